/**
 * What the package needs of a game's generated bindings: the engine's tables, reducers and clock, as interfaces that
 * every generated `DbConnection` of a module with installed workflows has. It knows no game, and calls nothing.
 */
import type { ScheduleAt, Timestamp } from 'spacetimedb';

/** Where a workflow is in its life. `Failed` is parked: it can be resumed. */
export type WorkflowStatus = 'Suspended' | 'Cancelling' | 'Completed' | 'Failed' | 'Cancelled';

/** A row of the table `workflow`. */
export interface WorkflowRow {
  readonly id: bigint;
  readonly workflowType: string;
  readonly entityId: bigint | undefined;
  readonly correlationId: string | undefined;
  readonly parentId: bigint | undefined;
  readonly status: { readonly tag: WorkflowStatus };
  /** The label of the wait where it is; empty before its first step. */
  readonly currentStep: string;
  readonly currentLine: number;
  /** UTF-8 JSON. */
  readonly stateData: Uint8Array;
  /** JSON. */
  readonly result: string | undefined;
  readonly error: string | undefined;
  readonly testMode: boolean;
  readonly steps: bigint;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

/** A row of the table `workflow_timer`: a deadline that a workflow waits for. */
export interface WorkflowTimerRow {
  readonly scheduledId: bigint;
  readonly scheduledAt: ScheduleAt;
  readonly workflowId: bigint;
  readonly timerName: string;
  readonly dueAt: Timestamp;
}

/** A table of the SDK's cache. The contexts of its callbacks are not used. */
export interface EngineTable<Row> {
  iter(): Iterable<Row>;
  onInsert(callback: (context: unknown, row: Row) => void): void;
  onUpdate(callback: (context: unknown, before: Row, row: Row) => void): void;
  onDelete(callback: (context: unknown, row: Row) => void): void;
  removeOnInsert(callback: (context: unknown, row: Row) => void): void;
  removeOnUpdate(callback: (context: unknown, before: Row, row: Row) => void): void;
  removeOnDelete(callback: (context: unknown, row: Row) => void): void;
}

/** The parameters of `workflow_start` and `workflow_start_test`. */
export interface StartParameters {
  workflowType: string;
  entityId: bigint | undefined;
  correlationId: string | undefined;
  init: string;
}

/** The engine's reducers that this package calls, as far as the bindings have them. */
export interface EngineReducers {
  workflowStart(parameters: StartParameters): Promise<void>;
  workflowStartTest(parameters: StartParameters): Promise<void>;
  workflowSignal(parameters: { workflowId: bigint; signal: string; payload: string }): Promise<void>;
  workflowBroadcastSignal(parameters: { signal: string; key: string; payload: string }): Promise<void>;
  workflowCancel(parameters: { workflowId: bigint }): Promise<void>;
  workflowResume(parameters: { workflowId: bigint }): Promise<void>;
  debugFireTimer(parameters: { workflowId: bigint; timerName: string }): Promise<void>;
  debugSendSignal(parameters: { workflowId: bigint; signal: string; payload: string }): Promise<void>;
}

/** A subscription of the SDK. */
export interface EngineSubscription {
  unsubscribe(): void;
  isEnded(): boolean;
}

/** The SDK's maker of subscriptions. */
export interface EngineSubscriptionBuilder {
  onApplied(callback: () => void): EngineSubscriptionBuilder;
  onError(callback: (context: { event?: Error }) => void): EngineSubscriptionBuilder;
  subscribe(queries: string[]): EngineSubscription;
}

/** A generated `DbConnection` of a module whose workflows clients may see (`install(..., public=True)`, the default). */
export interface WorkflowConnection {
  readonly db: {
    readonly workflow: EngineTable<WorkflowRow>;
    readonly workflowTimer: EngineTable<WorkflowTimerRow>;
  };
  /** Those of `EngineReducers` that the module opens to clients. */
  readonly reducers: object;
  readonly procedures: { workflowNow(parameters: Record<string, never>): Promise<Timestamp> };
  subscriptionBuilder(): EngineSubscriptionBuilder;
}
