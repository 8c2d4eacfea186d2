/**
 * The server's clock, as well as a client can tell: it is asked for its time, and the half of the way there and back is
 * what the answer may be off by. Deadlines are the server's, so what is left of them is, too.
 */
import type { Timestamp } from 'spacetimedb';

/** How many questions one synchronisation asks; the answer that was fastest counts. */
const QUESTIONS = 3;
/** After so long clocks may have drifted apart, or this computer may have slept. */
const FRESH_MS = 30_000;

/** The clock of the server that a client is connected to. */
export class ServerClock {
  readonly #ask: () => Promise<Timestamp>;
  #offsetMs = 0;
  #at = -Infinity;
  #asking: Promise<void> | undefined;

  constructor(ask: () => Promise<Timestamp>) {
    this.#ask = ask;
  }

  /** The server's time in milliseconds since 1970; this computer's time before the first `synchronise`. */
  now(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Resolves when the clock is known; asks the server if that was long ago. */
  synchronise(): Promise<void> {
    const age = Date.now() - this.#at;
    if (age >= 0 && age < FRESH_MS) {
      return Promise.resolve();
    }
    this.#asking ??= this.#synchronise().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #synchronise(): Promise<void> {
    let best = Infinity;
    for (let question = 0; question < QUESTIONS; question += 1) {
      const before = Date.now();
      const server = Number((await this.#ask()).microsSinceUnixEpoch) / 1000;
      const after = Date.now();
      if (after - before < best) {
        best = after - before;
        this.#offsetMs = server - (before + after) / 2;
      }
    }
    this.#at = Date.now();
  }
}
