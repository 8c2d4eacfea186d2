/** A list that follows the rows of a query until it is closed, in the form that stores of user interfaces have. */
import type { Link } from './link.js';
import type { Query } from './live.js';

/** What a watch shows: the same object until something changes. */
export interface WatchSnapshot<Item> {
  readonly items: readonly Item[];
  /** Whether they are complete: false until the server has answered, and after the connection has ended. */
  readonly isReady: boolean;
  /** Why there are none: the server's refusal. */
  readonly error: Error | undefined;
}

/** What a watch is made of: the rows, whatever they are of. */
export interface WatchSource<Item> {
  readonly live: { readonly ready: Promise<void>; readonly isReady: boolean; listen(listener: () => void): () => void };
  items(): Item[];
  release(): void;
}

/** The workflows or timers of a query, now and as they change. Close it when it is not needed any more. */
export class Watch<Item> {
  /** Resolves when the items are there; rejects when the server refuses, or the connection ends before. */
  readonly ready: Promise<void>;
  readonly #link: Link;
  readonly #source: WatchSource<Item>;
  readonly #forget: (() => void)[];
  readonly #listeners = new Set<() => void>();
  #snapshot: WatchSnapshot<Item> | undefined;
  #error: Error | undefined;
  #isTelling = false;
  #isClosed = false;

  /** @internal */
  constructor(link: Link, source: WatchSource<Item>) {
    const { live } = source;
    this.#link = link;
    this.#source = source;
    this.ready = live.ready;
    this.#forget = [live.listen(() => this.#changed()), link.onEnd(() => this.#changed())];
    live.ready.then(
      () => this.#changed(),
      (error: Error) => {
        this.#error = link.ended === undefined ? error : undefined;
        this.#changed();
      },
    );
  }

  /** The items by id, as they are now. */
  get items(): readonly Item[] {
    return this.snapshot().items;
  }

  /** The items with what is known of them; the same object until something changes. */
  snapshot(): WatchSnapshot<Item> {
    this.#snapshot ??= {
      items: this.#source.items(),
      isReady: this.#source.live.isReady && this.#link.ended === undefined,
      error: this.#error,
    };
    return this.#snapshot;
  }

  /** Calls back after changes: once for all that one message of the server brought. What it returns ends that. */
  subscribe(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Ends it, and the subscription if nobody else uses that. What it shows stays as it is. */
  close(): void {
    if (this.#isClosed) {
      return;
    }
    this.snapshot();
    this.#isClosed = true;
    this.#listeners.clear();
    for (const forget of this.#forget) {
      forget();
    }
    this.#source.release();
  }

  #changed(): void {
    if (this.#isClosed) {
      return;
    }
    this.#snapshot = undefined;
    if (this.#isTelling) {
      return;
    }
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      for (const listener of this.#listeners) {
        queueMicrotask(listener); // one that throws keeps nothing from the others
      }
    });
  }
}

/** A watch of the rows of a query, each shown as an item. */
export function watchRows<Row, Item>(link: Link, query: Query<Row>, item: (row: Row) => Item): Watch<Item> {
  const live = link.acquire(query);
  return new Watch(link, {
    live,
    items: () => [...live.rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => item(row)),
    release: () => link.release(query, live),
  });
}
