/**
 * The rows of one query, kept up to date by a subscription, and shared by all that ask for the same query. It knows
 * rows and their changes, not what they mean.
 */
import type { EngineSubscription, EngineTable } from './bindings.js';
import type { Link } from './link.js';

/** Which rows, twice: for the server, and for the rows of other subscriptions to the same table. */
export interface Query<Row> {
  readonly table: EngineTable<Row>;
  readonly sql: string;
  key(row: Row): bigint;
  matches(row: Row): boolean;
}

/** Gets each version of each row, as it comes: the row, or `undefined` for one that is gone. */
export type RowListener<Row> = (key: bigint, row: Row | undefined) => void;

export class LiveRows<Row> {
  readonly rows = new Map<bigint, Row>();
  /** Resolves when the rows are there; rejects when the server refuses the query, or the connection ends. */
  readonly ready: Promise<void>;
  isReady = false;
  users = 0;
  readonly #listeners = new Set<RowListener<Row>>();
  readonly #subscription: EngineSubscription;
  readonly #remove: () => void;

  constructor(link: Link, query: Query<Row>) {
    const { table } = query;
    const set = (row: Row) => {
      if (query.matches(row)) {
        this.#change(query.key(row), row);
      }
    };
    const inserted = (_context: unknown, row: Row) => set(row);
    const updated = (_context: unknown, _before: Row, row: Row) => set(row);
    const deleted = (_context: unknown, row: Row) => {
      if (this.rows.has(query.key(row))) {
        this.#change(query.key(row), undefined);
      }
    };
    table.onInsert(inserted);
    table.onUpdate(updated);
    table.onDelete(deleted);
    this.#remove = () => {
      table.removeOnInsert(inserted);
      table.removeOnUpdate(updated);
      table.removeOnDelete(deleted);
    };
    let subscription: EngineSubscription | undefined;
    this.ready = link.pending(
      () =>
        new Promise<void>((resolve, reject) => {
          subscription = link.connection
            .subscriptionBuilder()
            .onApplied(() => {
              for (const row of table.iter()) {
                if (query.matches(row)) {
                  this.rows.set(query.key(row), row);
                }
              }
              this.isReady = true;
              resolve();
            })
            .onError(({ event }) => reject(event ?? new Error(`the server refuses ${query.sql}`)))
            .subscribe([query.sql]);
        }),
    );
    this.ready.catch(() => undefined); // whoever waits for it hears of it
    this.#subscription = subscription ?? { unsubscribe: () => undefined, isEnded: () => true };
  }

  listen(listener: RowListener<Row>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#remove();
    this.#listeners.clear();
    if (!this.#subscription.isEnded()) {
      this.#subscription.unsubscribe();
    }
  }

  #change(key: bigint, row: Row | undefined): void {
    if (row === undefined) {
      this.rows.delete(key);
    } else {
      this.rows.set(key, row);
    }
    for (const listener of [...this.#listeners]) {
      listener(key, row);
    }
  }
}
