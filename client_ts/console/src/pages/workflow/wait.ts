// What a workflow waits for, from the engine's own JSON in `wait_data`; see `workflow_module/armed.py`.

export type Leaf =
  | { kind: 'timer'; name: string; due: bigint }
  | { kind: 'signal'; name: string; due: bigint | null }
  | { kind: 'call'; id: bigint; name: string; done: boolean }
  | { kind: 'child'; id: bigint; name: string; done: boolean };

type Armed = any[]; // the engine's JSON

export interface Wait {
  /** `any`: the first of these ends the wait; `all`: it takes all of them. */
  how: 'one' | 'any' | 'all';
  leaves: Leaf[];
}

export function readWait(armed: Armed | null): Wait {
  if (armed === null) return { how: 'one', leaves: [] };
  const how = armed[0] === 'x' ? 'any' : armed[0] === 'g' || armed[0] === 'a' ? 'all' : 'one';
  return { how, leaves: leavesOf(armed) };
}

function leavesOf(armed: Armed): Leaf[] {
  const due = (value: unknown): bigint | null => (value === null || value === undefined ? null : BigInt(value as number));
  switch (armed[0]) {
    case 't':
      return armed[3] ? [] : [{ kind: 'timer', name: armed[1] ?? 'sleep', due: BigInt(armed[2]) }];
    case 's':
      return [{ kind: 'signal', name: armed[1], due: due(armed[2]) }];
    case 'c':
      return [{ kind: 'call', id: BigInt(armed[1]), name: armed[2], done: (armed[3] ?? null) !== null }];
    case 'w':
      return [{ kind: 'child', id: BigInt(armed[1]), name: armed[2], done: (armed[4] ?? null) !== null }];
    case 'a':
      return armed[1].map((name: string) => ({ kind: 'signal', name, due: due(armed[2]) }));
    case 'x':
    case 'g':
      return armed[1].flatMap(leavesOf);
    default:
      return [];
  }
}
