// The connection to one database, made anew when it is lost, and the queries that are followed over it.
//
// What was seen stays in sight while the connection is lost: a query's rows are replaced once it is answered again.

import { connectionBuilder, type Connection } from '../module/remote';
import { noteServerTime } from './clock';
import type { Schema } from '../module/schema';
import type { Row } from '../module/values';

export type LinkState = 'connecting' | 'live' | 'lost';

const RETRY_MS = [300, 700, 1500, 3000, 5000];
/** Changes are shown in batches: a busy table changes many times a second. */
const BATCH_MS = 50;
const EVENTS_MAX = 500;

type Listener = () => void;

/** Queries that are followed together, until `stop`. */
export interface Following {
  readonly queries: string[];
  /** Whether the rows are there, and are kept up to date. */
  applied: boolean;
  error: string | null;
  stop: () => void;
}

interface Followed extends Following {
  changed: Listener;
  handle: { unsubscribe(): void } | null;
  stopped: boolean;
}

export class Link {
  state: LinkState = 'connecting';
  /** Why the connection was lost, when the server said so. */
  problem: string | null = null;
  private connection: Connection | null = null;
  private readonly followed = new Set<Followed>();
  private readonly stateListeners = new Set<Listener>();
  private readonly tableListeners = new Map<string, Set<Listener>>();
  private watched = new Set<string>();
  private readonly dirty = new Set<string>();
  private readonly events = new Map<string, Row[]>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly unanswered = new Set<Listener>();
  private failures = 0;
  private closed = false;

  constructor(
    readonly database: string,
    readonly schema: Schema,
    private readonly token: string,
  ) {
    this.connect();
  }

  close(): void {
    this.closed = true;
    this.connection?.disconnect();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  onState(listener: Listener): Listener {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  }

  /** Follow queries. `changed` is called when they are answered or refused. */
  follow(queries: string[], changed: Listener): Following {
    const one: Followed = {
      queries,
      applied: false,
      error: null,
      changed,
      handle: null,
      stopped: false,
      stop: () => {
        one.stopped = true;
        this.followed.delete(one);
        if (one.applied) one.handle?.unsubscribe();
      },
    };
    this.followed.add(one);
    if (this.state === 'live') this.ask(one);
    return one;
  }

  /** The rows of a table that the followed queries have given. */
  rows(table: string): Row[] {
    const events = this.events.get(table);
    if (events) return events;
    const found = this.connection?.db[table];
    return found ? [...found.iter()] : [];
  }

  /** Be told when rows of a table come, change or go. */
  onTable(table: string, listener: Listener): Listener {
    let listeners = this.tableListeners.get(table);
    if (!listeners) this.tableListeners.set(table, (listeners = new Set()));
    listeners.add(listener);
    this.watch(table);
    return () => listeners.delete(listener);
  }

  async call(name: string, params: Row): Promise<void> {
    await this.answered(this.need().callReducerWithParams(name, undefined as never, params));
  }

  async callProcedure(name: string, params: Row): Promise<unknown> {
    return this.answered(this.need().callProcedureWithParams(name, undefined as never, params, undefined as never));
  }

  /** The SDK says nothing of calls whose connection is lost. */
  private answered<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const lost = (): void => reject(new Error('The connection was lost before the answer came. It may have been done: look before you do it again.'));
      this.unanswered.add(lost);
      answer.then(resolve, reject).finally(() => this.unanswered.delete(lost));
    });
  }

  private need(): Connection {
    if (this.connection === null || this.state !== 'live') throw new Error('There is no connection to the server right now; nothing was called.');
    return this.connection;
  }

  private connect(): void {
    if (this.closed) return;
    let over = false;
    const lost = (_context: unknown, error?: Error): void => {
      if (over || this.closed) return;
      over = true;
      this.problem = error?.message || null;
      this.setState('lost');
      const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]!;
      this.failures += 1;
      this.timer = setTimeout(() => this.connect(), wait);
    };
    this.watched = new Set();
    this.events.clear();
    connectionBuilder(this.schema)
      .withUri(location.origin.replace(/^http/, 'ws'))
      .withDatabaseName(this.database)
      .withCompression('none')
      .withToken(this.token)
      .onConnect((connection) => {
        if (this.closed) return connection.disconnect();
        this.connection = connection;
        this.failures = 0;
        this.problem = null;
        this.setState('live');
        for (const table of this.tableListeners.keys()) this.watch(table);
        for (const one of this.followed) this.ask(one);
        void this.askTime();
      })
      .onConnectError(lost)
      .onDisconnect(lost)
      .build();
  }

  private async askTime(): Promise<void> {
    if (!this.schema.functions.some(({ name }) => name === 'workflow_now')) return;
    const asked = Date.now();
    try {
      const { microsSinceUnixEpoch } = (await this.callProcedure('workflow_now', {})) as { microsSinceUnixEpoch: bigint };
      noteServerTime(Number(microsSinceUnixEpoch / 1000n), asked, Date.now());
    } catch {
      // it goes by the clock of this machine then
    }
  }

  private setState(state: LinkState): void {
    if (state === 'lost') {
      for (const one of this.followed) Object.assign(one, { applied: false, handle: null });
      for (const lost of this.unanswered) lost();
    }
    this.state = state;
    for (const listener of [...this.stateListeners]) listener();
  }

  private ask(one: Followed): void {
    const connection = this.connection!;
    one.error = null;
    one.handle = connection
      .subscriptionBuilder()
      .onApplied(() => {
        if (one.stopped) return one.handle?.unsubscribe();
        one.applied = true;
        one.changed();
      })
      .onError((context) => {
        one.error = (context.event as unknown as Error | undefined)?.message ?? 'the query was refused';
        one.changed();
      })
      .subscribe(one.queries);
  }

  private watch(name: string): void {
    const table = this.connection?.db[name];
    if (!table || this.watched.has(name)) return;
    this.watched.add(name);
    if (this.schema.tables.find((one) => one.name === name)?.isEvent) {
      const events: Row[] = [];
      this.events.set(name, events);
      table.onInsert((_context: unknown, row: Row) => {
        this.events.set(name, [row, ...this.events.get(name)!].slice(0, EVENTS_MAX));
        this.touch(name);
      });
      return;
    }
    const touch = (): void => this.touch(name);
    table.onInsert(touch);
    table.onDelete(touch);
    table.onUpdate?.(touch);
  }

  private touch(table: string): void {
    if (this.dirty.size === 0) {
      setTimeout(() => {
        const dirty = [...this.dirty];
        this.dirty.clear();
        for (const name of dirty) for (const listener of [...(this.tableListeners.get(name) ?? [])]) listener();
      }, BATCH_MS);
    }
    this.dirty.add(table);
  }
}
