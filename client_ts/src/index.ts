/**
 * Durable workflows of a gamedb game, from TypeScript: on top of the official `spacetimedb` SDK and of the bindings that
 * `gamedb generate` writes.
 *
 * @packageDocumentation
 */
export type {
  EngineReducers,
  EngineSubscription,
  EngineSubscriptionBuilder,
  EngineTable,
  StartParameters,
  WorkflowConnection,
  WorkflowRow,
  WorkflowStatus,
  WorkflowTimerRow,
} from './bindings.js';
export { WorkflowClient, workflowId, type StartedWorkflow, type StartOptions, type WaitOptions } from './client.js';
export type { ServerClock } from './clock.js';
export { Disconnected, NotOpen, UnknownWorkflow, WorkflowCancelled, WorkflowError, WorkflowFailed } from './errors.js';
export { parseJson, writeJson } from './json.js';
export type { WorkflowFilter } from './queries.js';
export type { WorkflowRun, WorkflowTimer } from './run.js';
export type { AnyWorkflows, KindOf, WorkflowDefinition, WorkflowId, WorkflowsShape, WorkflowTypes } from './typing.js';
export type { Watch, WatchSnapshot } from './watch.js';
