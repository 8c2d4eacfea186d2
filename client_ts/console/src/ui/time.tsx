import { useNow } from '../live/hooks';
import { timeText } from '../module/values';

/** `4 s`, `3 min`, `2 h`, `5 d`: how long, in one unit. */
export function roughly(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** `0:04`, `3:07`, `2:03:07`, `5 d 02:03`: what is left. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const two = (number: number): string => `${number}`.padStart(2, '0');
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 9999) return 'never';
  if (days) return `${days} d ${two(hours)}:${two(minutes)}`;
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** Timers that are due fire within moments; later than this they are late. */
export const LATE_MS = 2000;

export const millis = (micros: bigint): number => Number(micros / 1000n);

export function Age({ micros, now }: { micros: bigint; now: number }) {
  return <time title={timeText(micros)}>{roughly(Math.max(0, now - millis(micros)))}</time>;
}

export function Countdown({ micros, everyMs = 1000 }: { micros: bigint; everyMs?: number }) {
  const now = useNow(everyMs);
  const left = millis(micros) - now;
  return (
    <time className={left < -LATE_MS ? 'is-late' : ''} title={timeText(micros)}>
      {left < -LATE_MS ? `${roughly(left)} late` : countdown(left)}
    </time>
  );
}

export function seconds(value: number | null): string {
  if (value === null) return '–';
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return `${value.toFixed(value < 10 ? 1 : 0)} s`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 ** 2) return `${(value / 1024).toFixed(0)} KB`;
  return `${(value / 1024 ** 2).toFixed(value < 1024 ** 2 * 100 ? 1 : 0)} MB`;
}

export const grouped = (value: number): string => Math.round(value).toLocaleString('en').replaceAll(',', '\u2009');
