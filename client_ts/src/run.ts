/** One workflow as a client sees it: its row, with the JSON in it parsed and typed. Values; nothing here asks the server. */
import type { Timestamp } from 'spacetimedb';
import type { WorkflowRow, WorkflowStatus, WorkflowTimerRow } from './bindings.js';
import { parseJson } from './json.js';
import type { AnyWorkflows, NameIn, ResultOf, TimerOf, ViewOf, WorkflowId } from './typing.js';

interface Run<W, K extends NameIn<W>> {
  readonly id: WorkflowId<K>;
  readonly type: K;
  readonly status: WorkflowStatus;
  /** The label of the wait where it is; empty before its first step. */
  readonly step: string;
  readonly entityId: bigint | undefined;
  readonly correlationId: string | undefined;
  readonly parentId: bigint | undefined;
  /** `init` and the variables where it waits, or waited last. */
  readonly view: ViewOf<W, K>;
  /** What it returned; `undefined` unless it is `Completed`. */
  readonly result: ResultOf<W, K> | undefined;
  /** The traceback of a failed step, or of an error while it cleaned up. */
  readonly error: string | undefined;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  /** All its columns. */
  readonly row: WorkflowRow;
}

/** A workflow. `run.type === 'auction'` tells the types of its `view` and `result`. */
export type WorkflowRun<W = AnyWorkflows, K extends NameIn<W> = NameIn<W>> = K extends NameIn<W> ? Run<W, K> : never;

/** A deadline that a workflow waits for. */
export interface WorkflowTimer<Name extends string = string> {
  readonly id: bigint;
  readonly name: Name;
  readonly dueAt: Date;
  /** Milliseconds until then by the server's clock, at the time of asking; 0 when it has passed. */
  readonly remaining: number;
}

/** A workflow has ended, or is parked: what its `outcome` waits for. */
export function isOver(status: WorkflowStatus): boolean {
  return status === 'Completed' || status === 'Failed' || status === 'Cancelled';
}

const runs = new WeakMap<WorkflowRow, RunOfRow>();
const utf8 = new TextDecoder();

class RunOfRow {
  #view: unknown;
  #result: unknown;

  constructor(readonly row: WorkflowRow) {}

  get id(): bigint {
    return this.row.id;
  }
  get type(): string {
    return this.row.workflowType;
  }
  get status(): WorkflowStatus {
    return this.row.status.tag;
  }
  get step(): string {
    return this.row.currentStep;
  }
  get entityId(): bigint | undefined {
    return this.row.entityId;
  }
  get correlationId(): string | undefined {
    return this.row.correlationId;
  }
  get parentId(): bigint | undefined {
    return this.row.parentId;
  }
  get error(): string | undefined {
    return this.row.error;
  }
  get createdAt(): Timestamp {
    return this.row.createdAt;
  }
  get updatedAt(): Timestamp {
    return this.row.updatedAt;
  }
  get view(): unknown {
    return (this.#view ??= viewOf(this.row.stateData));
  }
  get result(): unknown {
    return this.status === 'Completed' ? (this.#result ??= parseJson(this.row.result ?? 'null')) : undefined;
  }
}

/** The variables of a state. Names that begin with `$` are the engine's own. */
function viewOf(stateData: Uint8Array): object {
  const state = parseJson(utf8.decode(stateData)) as object;
  return Object.fromEntries(Object.entries(state).filter(([name]) => !name.startsWith('$')));
}

/** The workflow of a row: always the same object for the same row. Its JSON is parsed when it is asked for. */
export function runOf<W, K extends NameIn<W>>(row: WorkflowRow): WorkflowRun<W, K> {
  let run = runs.get(row);
  if (run === undefined) {
    run = new RunOfRow(row);
    runs.set(row, run);
  }
  return run as unknown as WorkflowRun<W, K>;
}

/** The timer of a row, at a time of the server in milliseconds. */
export function timerOf<W, K extends NameIn<W>>(row: WorkflowTimerRow, now: number): WorkflowTimer<TimerOf<W, K>> {
  const due = Number(row.dueAt.microsSinceUnixEpoch) / 1000;
  return {
    id: row.scheduledId,
    name: row.timerName as TimerOf<W, K>,
    dueAt: new Date(due),
    remaining: Math.max(0, due - now),
  };
}
