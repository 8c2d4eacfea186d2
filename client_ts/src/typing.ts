/**
 * What the generated `workflows.ts` says, as types that the client's methods use: which signals, timers, inits, results
 * and views a workflow has. Types alone; nothing of it exists at run time.
 */

/** The types of one workflow. */
export interface WorkflowTypes {
  init: unknown;
  result: unknown;
  view: unknown;
  signals: object;
  timers: string;
}

/** What a client knows that was given no types: everything is allowed, and `unknown`. */
export interface AnyWorkflows {
  [type: string]: {
    init: unknown;
    result: unknown;
    view: { [variable: string]: unknown };
    signals: { [name: string]: unknown };
    timers: string;
  };
}

/** The shape of the generated interface `Workflows`. */
export type WorkflowsShape<W> = { [K in keyof W]: WorkflowTypes };

/** The names of the workflows. */
export type NameIn<W> = keyof W & string;

declare const kind: unique symbol;

/** A workflow's id that knows, in types alone, which workflow it is of. At run time it is a plain `bigint`. */
export type WorkflowId<K extends string = string> = bigint & { readonly [kind]: K };

/** What an id is of: one workflow, if it is a `WorkflowId`; any of them, if it is a plain `bigint`. */
export type KindOf<W, I extends bigint> = I extends { readonly [kind]: infer K } ? K & NameIn<W> : NameIn<W>;

/** What a generated workflow object has that is needed here. */
export interface WorkflowDefinition<K extends string> {
  readonly type: K;
}

/** The JSON that starts a workflow. */
export type InitOf<W, K> = K extends keyof W ? (W[K] extends { init: infer T } ? T : never) : never;
/** The JSON that a workflow returns. */
export type ResultOf<W, K> = K extends keyof W ? (W[K] extends { result: infer T } ? T : never) : never;
/** The variables of a workflow that waits. */
export type ViewOf<W, K> = K extends keyof W ? (W[K] extends { view: infer T } ? T : never) : never;
/** The names of the timers of a workflow; those that the engine names itself, too. */
export type TimerOf<W, K> = K extends keyof W
  ? (W[K] extends { timers: infer T extends string } ? T : never) | 'sleep' | `timeout(${string})`
  : never;
/** The names of the signals of a workflow. */
export type SignalOf<W, K> = K extends keyof W
  ? W[K] extends { signals: infer T extends object }
    ? keyof T & string
    : never
  : never;
/** The payload of a signal. */
export type PayloadOf<W, K, S> = K extends keyof W
  ? W[K] extends { signals: infer T extends object }
    ? S extends keyof T
      ? T[S]
      : never
    : never
  : never;
/** An init as an argument: it may be left out where the workflow takes none. */
export type InitArguments<I, Options> = [null] extends [I]
  ? [init?: I, options?: Options]
  : [init: I, options?: Options];
/** A payload as a last argument: it may be left out when all its fields may. */
export type PayloadArgument<P> = [Record<string, never>] extends [P] ? [payload?: P] : [payload: P];
