// The server's time: what is left until a deadline must not depend on how wrong the clock of this machine is.

let ahead = 0;

/** Milliseconds since 1970, as the server has it. */
export const serverNow = (): number => Date.now() + ahead;

/** Note what the server said its time was, and when that was asked and answered here. */
export function noteServerTime(server: number, asked: number, answered: number): void {
  const measured = server - (asked + answered) / 2;
  // Within the way there and back nothing is known, and a clock that jumps about is worse than one that is a little off.
  ahead = Math.abs(measured) <= answered - asked ? 0 : measured;
}
