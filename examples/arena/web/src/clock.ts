// The server's clock, as far as this page can tell. Deadlines are the server's, so what is left of them is, too.

import { useEffect, useState } from 'react';

let offset: number | null = null;

/** A row that was written just now carries this time. Of several guesses the one with the least delay is the best. */
export function hear(serverMs: number): void {
  const sample = serverMs - Date.now();
  if (offset === null || sample > offset) offset = sample;
  else offset += (sample - offset) * 0.02; // the clocks may drift
}

/** Now, in the server's milliseconds since 1970. */
export function serverNow(): number {
  return Date.now() + (offset ?? 0);
}

/** Now, again and again. */
export function useNow(everyMs = 250): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** 0:07, 1:32. */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
