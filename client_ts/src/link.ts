/**
 * One connection, as all clients and hooks on it share it: its subscriptions, the server's clock, and its end, which
 * rejects whatever is pending. The SDK itself lets promises hang when a connection ends.
 */
import type { EngineReducers, WorkflowConnection } from './bindings.js';
import { ServerClock } from './clock.js';
import { Disconnected, NotOpen } from './errors.js';
import { LiveRows, type Query } from './live.js';

const links = new WeakMap<WorkflowConnection, Link>();

/** What a connection of the SDK has at run time; its types keep the callbacks private. */
interface Observable {
  readonly isSocketClosed?: boolean;
  onDisconnect?(callback: (context: unknown, error?: unknown) => void): void;
  onConnectError?(callback: (context: unknown, error?: unknown) => void): void;
}

export class Link {
  /** The link of a connection: always the same one. */
  static of(connection: WorkflowConnection): Link {
    let link = links.get(connection);
    if (link === undefined) {
      link = new Link(connection);
      links.set(connection, link);
    }
    return link;
  }

  readonly clock = new ServerClock(() => this.pending(() => this.connection.procedures.workflowNow({})));
  /** Why nothing goes any more, once the connection has ended. */
  ended: Disconnected | undefined;
  readonly #onEnd = new Set<(error: Disconnected) => void>();
  readonly #live = new Map<string, LiveRows<never>>();

  private constructor(readonly connection: WorkflowConnection) {
    const observable = connection as unknown as Observable;
    const end = (_context: unknown, error?: unknown) => this.end(error);
    observable.onDisconnect?.(end);
    observable.onConnectError?.(end);
    this.#look();
  }

  /** A socket can be closed without having told anybody: before this was made, or while a page was frozen. */
  #look(): void {
    if ((this.connection as unknown as Observable).isSocketClosed === true) {
      this.end();
    }
  }

  end(cause?: unknown): void {
    if (this.ended === undefined) {
      const error = (this.ended = new Disconnected(cause));
      for (const callback of [...this.#onEnd]) {
        callback(error);
      }
      this.#onEnd.clear();
    }
  }

  /** Calls back when the connection ends; at once if it has. What it returns takes that back. */
  onEnd(callback: (error: Disconnected) => void): () => void {
    if (this.ended !== undefined) {
      callback(this.ended);
      return () => undefined;
    }
    this.#onEnd.add(callback);
    return () => this.#onEnd.delete(callback);
  }

  /** Starts something, and gives its promise; it rejects when the connection ends. */
  pending<T>(begin: () => Promise<T>): Promise<T> {
    this.#look();
    return new Promise((resolve, reject) => {
      if (this.ended !== undefined) {
        reject(this.ended);
        return;
      }
      const forget = this.onEnd(reject);
      begin().then(resolve, reject).finally(forget);
    });
  }

  /** Calls a reducer of the engine; `NotOpen` when the bindings have it not. */
  call<Name extends keyof EngineReducers>(
    name: Name,
    parameters: Parameters<EngineReducers[Name]>[0],
  ): Promise<void> {
    const reducer = (this.connection.reducers as Partial<EngineReducers>)[name];
    if (reducer === undefined) {
      return Promise.reject(new NotOpen(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)));
    }
    return this.pending(() => (reducer as (given: typeof parameters) => Promise<void>)(parameters));
  }

  /** The rows of a query, until as many `release`s. */
  acquire<Row>(query: Query<Row>): LiveRows<Row> {
    let live = this.#live.get(query.sql) as LiveRows<Row> | undefined;
    if (live === undefined) {
      live = new LiveRows(this, query);
      this.#live.set(query.sql, live as unknown as LiveRows<never>);
      // A query that was refused is asked anew the next time.
      const made = live;
      made.ready.catch(() => {
        if (this.#live.get(query.sql) === (made as unknown)) {
          this.#live.delete(query.sql);
        }
      });
    }
    live.users += 1;
    return live;
  }

  release<Row>(query: Query<Row>, live: LiveRows<Row>): void {
    live.users -= 1;
    if (live.users === 0) {
      if (this.#live.get(query.sql) === (live as unknown)) {
        this.#live.delete(query.sql);
      }
      live.close();
    }
  }
}
