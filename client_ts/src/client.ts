/**
 * `WorkflowClient`: the workflows of a game, over a connection that the game's own bindings have made. It reads the
 * engine's public tables by subscription, and writes by the engine's reducers that the game opens.
 */
import type { WorkflowConnection } from './bindings.js';
import type { ServerClock } from './clock.js';
import { UnknownWorkflow, WorkflowCancelled, WorkflowError, WorkflowFailed } from './errors.js';
import { writeJson } from './json.js';
import { Link } from './link.js';
import { timerQuery, workflowQuery, type WorkflowFilter } from './queries.js';
import { isOver, runOf, timerOf, type WorkflowRun, type WorkflowTimer } from './run.js';
import type {
  AnyWorkflows,
  InitArguments,
  InitOf,
  KindOf,
  NameIn,
  PayloadArgument,
  PayloadOf,
  ResultOf,
  SignalOf,
  TimerOf,
  ViewOf,
  WorkflowDefinition,
  WorkflowId,
  WorkflowsShape,
} from './typing.js';
import { watchRows, type Watch } from './watch.js';

/** Of whom a new workflow is, and how to find it again. */
export interface StartOptions {
  entityId?: bigint | undefined;
  /** A run of this type that has it is joined. Without one, the client makes up one, by which it knows its run. */
  correlationId?: string | undefined;
}

/** A workflow that was started, or joined. */
export interface StartedWorkflow<K extends string = string> {
  readonly id: WorkflowId<K>;
  readonly type: K;
  readonly correlationId: string;
}

/** How long to wait. */
export interface WaitOptions {
  /** Ends the waiting: `AbortSignal.timeout(5_000)`, say. The promise is rejected with its reason. */
  abort?: AbortSignal | undefined;
}

/**
 * The id of a workflow that is known to be of one type: `workflowId(auction, lot.auctionId)`.
 *
 * At run time it is the id itself; in types it tells the signals, timers, view and result.
 */
export function workflowId<K extends string>(_workflow: WorkflowDefinition<K>, id: bigint): WorkflowId<K> {
  return id as WorkflowId<K>;
}

/** `crypto.randomUUID` is there on https and localhost only. */
function freshId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * The workflows of a game.
 *
 * ```ts
 * const workflows = new WorkflowClient<Workflows>(conn);
 * ```
 *
 * `Workflows` is from the generated `workflows.ts`, and `conn` a `DbConnection` of the generated bindings. Every method
 * takes the id that `start` gave, or one that `workflowId` made, and then knows the types of that workflow; with a plain
 * `bigint` it allows what any workflow has.
 *
 * What the server refuses rejects with the SDK's error, which carries the server's text. When the connection ends,
 * all that is pending rejects with `Disconnected`, and so does every later call: make a client of the next connection.
 */
export class WorkflowClient<W extends WorkflowsShape<W> = AnyWorkflows> {
  readonly #link: Link;

  constructor(readonly connection: WorkflowConnection) {
    this.#link = Link.of(connection);
  }

  /** The server's clock. */
  get clock(): ServerClock {
    return this.#link.clock;
  }

  /** Starts a workflow. */
  async start<K extends NameIn<W>>(
    workflow: WorkflowDefinition<K>,
    ...[init, options]: InitArguments<InitOf<W, K>, StartOptions>
  ): Promise<StartedWorkflow<K>> {
    return this.#start('workflowStart', workflow.type, init, options);
  }

  /** Starts a workflow in manual mode: its timers fire by `debugFireTimer` only. */
  async startTest<K extends NameIn<W>>(
    workflow: WorkflowDefinition<K>,
    ...[init, options]: InitArguments<InitOf<W, K>, StartOptions>
  ): Promise<StartedWorkflow<K>> {
    return this.#start('workflowStartTest', workflow.type, init, options);
  }

  async #start<K extends NameIn<W>>(
    reducer: 'workflowStart' | 'workflowStartTest',
    type: K,
    init: unknown,
    options: StartOptions = {},
  ): Promise<StartedWorkflow<K>> {
    const correlationId = options.correlationId ?? freshId();
    const query = workflowQuery(this.connection, { type, correlationId });
    // Subscribed and called at once: the row is there when the call is answered, and its id is not told otherwise.
    const live = this.#link.acquire(query);
    try {
      const call = this.#link.call(reducer, {
        workflowType: type,
        entityId: options.entityId,
        correlationId,
        init: writeJson(init),
      });
      await Promise.all([call, live.ready]);
      const [row] = live.rows.values();
      if (row === undefined) {
        throw new WorkflowError(`${type} ${correlationId} was started, but this client may not see it`);
      }
      return { id: row.id as WorkflowId<K>, type, correlationId };
    } finally {
      this.#link.release(query, live);
    }
  }

  /** Sends a signal. */
  async signal<I extends bigint, S extends SignalOf<W, KindOf<W, I>>>(
    id: I,
    signal: S,
    ...[payload]: PayloadArgument<PayloadOf<W, KindOf<W, I>, S>>
  ): Promise<void> {
    return this.#link.call('workflowSignal', { workflowId: id, signal, payload: writeJson(payload ?? {}) });
  }

  /** Sends a signal to all workflows that subscribed to it with this key. */
  async broadcast<S extends SignalOf<W, NameIn<W>>>(
    signal: S,
    key: string | number | bigint,
    ...[payload]: PayloadArgument<PayloadOf<W, NameIn<W>, S>>
  ): Promise<void> {
    const given = { signal, key: String(key), payload: writeJson(payload ?? {}) };
    return this.#link.call('workflowBroadcastSignal', given);
  }

  /** Raises `Cancelled` where a workflow waits. Twice is once. */
  async cancel(id: bigint): Promise<void> {
    return this.#link.call('workflowCancel', { workflowId: id });
  }

  /** Tries the step again at which a workflow failed. */
  async resume(id: bigint): Promise<void> {
    return this.#link.call('workflowResume', { workflowId: id });
  }

  /** Lets a timer be due now, whatever the clock says. */
  async debugFireTimer<I extends bigint>(id: I, timer: TimerOf<W, KindOf<W, I>>): Promise<void> {
    return this.#link.call('debugFireTimer', { workflowId: id, timerName: timer });
  }

  /** Sends a signal, as tests may. */
  async debugSendSignal<I extends bigint, S extends SignalOf<W, KindOf<W, I>>>(
    id: I,
    signal: S,
    ...[payload]: PayloadArgument<PayloadOf<W, KindOf<W, I>, S>>
  ): Promise<void> {
    return this.#link.call('debugSendSignal', { workflowId: id, signal, payload: writeJson(payload ?? {}) });
  }

  /** A workflow as it is now. Rejects with `UnknownWorkflow` when there is none. */
  async get<I extends bigint>(id: I): Promise<WorkflowRun<W, KindOf<W, I>>> {
    return this.waitFor(id, () => true);
  }

  /** `init` and the variables of a workflow, where it waits or waited last. */
  async view<I extends bigint>(id: I): Promise<ViewOf<W, KindOf<W, I>>> {
    return (await this.get(id)).view as ViewOf<W, KindOf<W, I>>;
  }

  /**
   * What a workflow returns, as soon as it does.
   *
   * Rejects with `WorkflowFailed` when it fails (it may be resumed then, and asked again), with `WorkflowCancelled` when
   * it is cancelled.
   */
  async outcome<I extends bigint>(id: I, options: WaitOptions = {}): Promise<ResultOf<W, KindOf<W, I>>> {
    const { row, result } = await this.waitFor(id, ({ status }) => isOver(status), options);
    if (row.status.tag === 'Failed') {
      throw new WorkflowFailed(row.id, row.workflowType, row.currentStep, row.error ?? '');
    }
    if (row.status.tag === 'Cancelled') {
      throw new WorkflowCancelled(row.id, row.workflowType, row.error);
    }
    return result as ResultOf<W, KindOf<W, I>>;
  }

  /**
   * The workflow, as soon as it is as the predicate wants it: it sees each state that the server tells.
   *
   * Rejects with `UnknownWorkflow` when there is none, or when it is deleted; with what the predicate throws.
   */
  async waitFor<I extends bigint>(
    id: I,
    predicate: (run: WorkflowRun<W, KindOf<W, I>>) => boolean,
    { abort }: WaitOptions = {},
  ): Promise<WorkflowRun<W, KindOf<W, I>>> {
    abort?.throwIfAborted();
    const query = workflowQuery(this.connection, { id });
    const live = this.#link.acquire(query);
    let aborted: (() => void) | undefined;
    let forget: (() => void) | undefined;
    try {
      return await this.#link.pending(
        () =>
          new Promise<WorkflowRun<W, KindOf<W, I>>>((resolve, reject) => {
            const look = () => {
              const row = live.rows.get(id);
              try {
                const run = row && runOf<W, KindOf<W, I>>(row);
                if (run === undefined) {
                  reject(new UnknownWorkflow(id));
                } else if (predicate(run)) {
                  resolve(run);
                }
              } catch (error) {
                reject(error);
              }
            };
            aborted = () => reject(abort?.reason);
            abort?.addEventListener('abort', aborted);
            if (live.isReady) {
              look();
            } else {
              live.ready.then(look, reject);
            }
            forget = live.listen(() => live.isReady && look());
          }),
      );
    } finally {
      forget?.();
      if (aborted !== undefined) {
        abort?.removeEventListener('abort', aborted);
      }
      this.#link.release(query, live);
    }
  }

  /** What a workflow waits for, by deadline, with the time that remains by the server's clock. */
  async timers<I extends bigint>(id: I): Promise<WorkflowTimer<TimerOf<W, KindOf<W, I>>>[]> {
    const query = timerQuery(this.connection, id);
    const live = this.#link.acquire(query);
    try {
      await Promise.all([live.ready, this.clock.synchronise()]);
      const now = this.clock.now();
      return [...live.rows.values()]
        .map((row) => timerOf<W, KindOf<W, I>>(row, now))
        .sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
    } finally {
      this.#link.release(query, live);
    }
  }

  /** The workflows of a filter, now and as they change. Close it when it is not needed any more. */
  watch<K extends NameIn<W> = NameIn<W>>(filter: WorkflowFilter<K>): Watch<WorkflowRun<W, K>> {
    return watchRows(this.#link, workflowQuery(this.connection, filter), runOf<W, K>);
  }

  /** The timers of a workflow, now and as they change. What remains is as of the clock at each change. */
  watchTimers<I extends bigint>(id: I): Watch<WorkflowTimer<TimerOf<W, KindOf<W, I>>>> {
    return watchRows(this.#link, timerQuery(this.connection, id), (row) =>
      timerOf<W, KindOf<W, I>>(row, this.clock.now()),
    );
  }
}
