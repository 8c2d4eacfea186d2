// How the tests talk to the server: connections that end with their test, and promises instead of callbacks.
import type { Identity, RowTypedQuery } from 'spacetimedb';
import { afterEach, inject } from 'vitest';
import {
  DbConnection,
  tables,
  type DbConnectionBuilder,
  type EventContext,
  type SubscriptionHandle,
} from './generated/game';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- queries over every table
type OneQuery = string | RowTypedQuery<any, any>;
export type Query = OneQuery | OneQuery[];

export interface Client {
  conn: DbConnection;
  identity: Identity;
  token: string;
  /** Resolves when the connection has ended. */
  closed: Promise<void>;
}

const open: Client[] = [];

afterEach(async () => {
  for (const client of open.splice(0)) {
    client.conn.disconnect();
    await client.closed;
  }
});

export function builder(): DbConnectionBuilder {
  return DbConnection.builder().withUri(inject('uri')).withDatabaseName(inject('database'));
}

/** A connection that is ready; it is closed after the test. */
export function connect(configure: (b: DbConnectionBuilder) => DbConnectionBuilder = (b) => b): Promise<Client> {
  return new Promise((resolve, reject) => {
    let end: () => void;
    const closed = new Promise<void>((done) => (end = done));
    configure(builder())
      .onConnect((conn, identity, token) => {
        const client = { conn, identity, token, closed };
        open.push(client);
        resolve(client);
      })
      .onConnectError((_ctx, error) => reject(error))
      .onDisconnect(() => {
        end();
        reject(new Error('the connection ended before it was ready'));
      })
      .build();
  });
}

/** Subscribes; resolves when the rows are there, rejects when the server refuses. */
export function subscribe(conn: DbConnection, query: Query): Promise<SubscriptionHandle> {
  return new Promise((resolve, reject) => {
    const handle: SubscriptionHandle = conn
      .subscriptionBuilder()
      .onApplied(() => resolve(handle))
      // The types leave out the second argument.
      .onError(((_ctx: unknown, error: Error) => reject(error)) as never)
      .subscribe(query as never);
  });
}

export function unsubscribe(handle: SubscriptionHandle): Promise<void> {
  return new Promise((resolve) => handle.unsubscribeThen(() => resolve()));
}

/** A connection that is subscribed. */
export async function subscribed(...queries: Query[]): Promise<Client> {
  const client = await connect();
  for (const query of queries) {
    await subscribe(client.conn, query);
  }
  return client;
}

interface Callbacks<Row> {
  onInsert(callback: (ctx: EventContext, row: Row) => void): void;
  onDelete?(callback: (ctx: EventContext, row: Row) => void): void;
  onUpdate?(callback: (ctx: EventContext, before: Row, after: Row) => void): void;
}

export type Change<Row> =
  | { kind: 'insert' | 'delete'; row: Row; event: string }
  | { kind: 'update'; before: Row; row: Row; event: string };

/** What the callbacks of a table tell, in order. */
export class Watch<Row> {
  readonly changes: Change<Row>[] = [];
  #waiting: { test: () => boolean; done: () => void }[] = [];

  constructor(table: Callbacks<Row>) {
    table.onInsert((ctx, row) => this.#add({ kind: 'insert', row, event: ctx.event.tag }));
    table.onDelete?.((ctx, row) => this.#add({ kind: 'delete', row, event: ctx.event.tag }));
    table.onUpdate?.((ctx, before, row) => this.#add({ kind: 'update', before, row, event: ctx.event.tag }));
  }

  /** The changes, as soon as there are so many. */
  async until(count: number): Promise<Change<Row>[]> {
    if (this.changes.length < count) {
      await new Promise<void>((done) => this.#waiting.push({ test: () => this.changes.length >= count, done }));
    }
    return this.changes;
  }

  kinds(): string[] {
    return this.changes.map((change) => change.kind);
  }

  clear(): void {
    this.changes.length = 0;
  }

  #add(change: Change<Row>): void {
    this.changes.push(change);
    this.#waiting = this.#waiting.filter(({ test, done }) => {
      if (test()) {
        done();
        return false;
      }
      return true;
    });
  }
}

/** A round trip: all that the server sent this connection before is applied. */
export async function settled(client: Client): Promise<void> {
  await client.conn.reducers.nothing({});
}

let numbers = 0;

/** A name that no other test uses, in this file or another. */
export function fresh(what: string): string {
  numbers += 1;
  return `${what}-${process.pid}-${Math.floor(performance.timeOrigin)}-${Math.random().toString(36).slice(2, 8)}-${numbers}`;
}

/** A number that no other test uses. */
export function freshNumber(): number {
  return 1_000 + Math.floor(Math.random() * 2_000_000_000);
}

/** What a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was not rejected');
}

export { tables };
