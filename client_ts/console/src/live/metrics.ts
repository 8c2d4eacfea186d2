// The server's numbers (`/metrics`, in Prometheus' text form), asked again and again, with what they were a while ago.

import { isUnanswered, type Api } from '../session';

const EVERY_MS = 2000;
const SAMPLES_MAX = 150;

export interface Sample {
  at: number;
  transactionsPerSecond: number;
  p50: number | null;
  p99: number | null;
  connections: number;
  liveQueries: number;
  queuedBytes: number;
  flushLag: number;
  behind: number;
  deliveryLag: number;
  overdue: number;
  memory: number;
  cpu: number;
}

export interface CallStats {
  name: string;
  count: number;
  perSecond: number;
  meanSeconds: number;
  p99: number | null;
}

interface Line {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/i;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/gi;

export function readMetrics(text: string): Line[] {
  const lines: Line[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || line[0] === '#') continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const labels: Record<string, string> = {};
    for (const [, key, value] of (found[2] ?? '').matchAll(LABEL)) labels[key!] = value!.replace(/\\(.)/g, (_all, c) => (c === 'n' ? '\n' : c));
    lines.push({ name: found[1]!, labels, value: Number(found[3]) });
  }
  return lines;
}

type Buckets = Map<number, number>;

/** The value below which a share of what was counted lies, in a straight line within its bucket. */
export function quantile(buckets: Buckets, before: Buckets | undefined, share: number): number | null {
  const bounds = [...buckets.keys()].sort((a, b) => a - b);
  const counts = bounds.map((bound) => buckets.get(bound)! - (before?.get(bound) ?? 0));
  const total = counts.at(-1) ?? 0;
  if (total <= 0) return null;
  const wanted = total * share;
  for (let at = 0; at < bounds.length; at += 1) {
    if (counts[at]! < wanted) continue;
    const low = at === 0 ? 0 : bounds[at - 1]!;
    const high = bounds[at] === Infinity ? low : bounds[at]!;
    const below = at === 0 ? 0 : counts[at - 1]!;
    const within = counts[at]! - below;
    return low + (high - low) * (within > 0 ? (wanted - below) / within : 1);
  }
  return null;
}

export class Metrics {
  version = 0;
  samples: Sample[] = [];
  /** Rows of each table. */
  rows = new Map<string, number>();
  calls: CallStats[] = [];
  /** Workflows by type and status. */
  workflows: { type: string; status: string; count: number }[] = [];
  error: string | null = null;
  private lines: Line[] = [];
  private first = false;
  private buckets = new Map<string, Buckets>();
  private sums = new Map<string, { count: number; seconds: number }>();
  private lastAt = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly listeners = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly api: Api,
    private readonly database: string,
  ) {
    void this.run();
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    try {
      const text = await (await this.api.fetch('/metrics')).text();
      this.take(readMetrics(text).filter(({ labels }) => labels.database === undefined || labels.database === this.database));
      this.error = null;
    } catch (error) {
      this.error = isUnanswered(error) ? null : (error as Error).message;
    }
    if (this.closed) return;
    this.version += 1;
    for (const listener of [...this.listeners]) listener();
    this.timer = setTimeout(() => void this.run(), document.hidden ? EVERY_MS * 5 : EVERY_MS);
  }

  private take(lines: Line[]): void {
    const before = this.lines;
    const at = performance.now();
    const seconds = before.length ? (at - this.lastAt) / 1000 : 0;
    this.lines = lines;
    this.lastAt = at;
    const value = (name: string, from = lines): number => from.find((line) => line.name === name)?.value ?? 0;
    const rate = (name: string): number => (seconds > 0 ? Math.max(0, value(name) - value(name, before)) / seconds : 0);

    this.rows = new Map(lines.filter(({ name }) => name === 'gamedb_rows').map((line) => [line.labels.table!, line.value]));
    this.workflows = lines
      .filter(({ name }) => name === 'gamedb_rows_of_workflow_by_workflow_type_and_status')
      .map(({ labels, value: count }) => ({ type: labels.workflow_type!, status: labels.status!, count }));
    const { p50, p99 } = this.takeDurations(lines, seconds);
    // What is counted since the server's start says nothing of now: the first sample goes as soon as there is another.
    this.samples = [
      ...(this.first ? [] : this.samples),
      {
        at: Date.now(),
        transactionsPerSecond: rate('gamedb_transactions_total'),
        p50,
        p99,
        connections: value('gamedb_connections'),
        liveQueries: value('gamedb_live_queries'),
        queuedBytes: value('gamedb_queued_bytes'),
        flushLag: value('gamedb_durable_lag_seconds'),
        behind: value('gamedb_durable_transactions_behind'),
        deliveryLag: value('gamedb_delivery_lag_seconds'),
        overdue: value('gamedb_schedule_lag_seconds'),
        memory: value('process_resident_memory_bytes'),
        cpu: rate('process_cpu_seconds_total'),
      },
    ].slice(-SAMPLES_MAX);
    this.first = before.length === 0;
  }

  private takeDurations(lines: Line[], seconds: number): { p50: number | null; p99: number | null } {
    const buckets = new Map<string, Buckets>();
    const all: Buckets = new Map();
    const allBefore: Buckets = new Map();
    const sums = new Map<string, { count: number; seconds: number }>();
    for (const { name, labels, value } of lines) {
      const call = labels.name ?? '';
      if (name === 'gamedb_transaction_seconds_bucket') {
        const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
        const own = buckets.get(call) ?? new Map<number, number>();
        own.set(bound, value);
        buckets.set(call, own);
        all.set(bound, (all.get(bound) ?? 0) + value);
      } else if (name === 'gamedb_transaction_seconds_count' || name === 'gamedb_transaction_seconds_sum') {
        const own = sums.get(call) ?? { count: 0, seconds: 0 };
        if (name.endsWith('count')) own.count = value;
        else own.seconds = value;
        sums.set(call, own);
      }
    }
    for (const own of this.buckets.values()) for (const [bound, count] of own) allBefore.set(bound, (allBefore.get(bound) ?? 0) + count);
    this.calls = [...sums].map(([name, { count, seconds: spent }]) => ({
      name,
      count,
      perSecond: seconds > 0 ? Math.max(0, count - (this.sums.get(name)?.count ?? 0)) / seconds : 0,
      meanSeconds: count ? spent / count : 0,
      p99: quantile(buckets.get(name) ?? new Map(), undefined, 0.99),
    }));
    this.buckets = buckets;
    this.sums = sums;
    return { p50: quantile(all, seconds > 0 ? allBefore : undefined, 0.5), p99: quantile(all, seconds > 0 ? allBefore : undefined, 0.99) };
  }
}
