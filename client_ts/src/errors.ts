/** What the client's promises are rejected with, besides the errors of the SDK: those carry the server's own text. */

/** Base of this package's errors. */
export class WorkflowError extends Error {
  override name = 'WorkflowError';
}

/** No workflow has this id, or this client may not see it. */
export class UnknownWorkflow extends WorkflowError {
  override name = 'UnknownWorkflow';

  constructor(
    readonly workflowId: bigint,
    what = `there is no workflow ${workflowId} that this client may see; it never was, or was deleted after its retention`,
  ) {
    super(what);
  }
}

/** The workflow is parked: its code raised. `error` is the server's text, with the traceback. It can be resumed. */
export class WorkflowFailed extends WorkflowError {
  override name = 'WorkflowFailed';

  constructor(
    readonly workflowId: bigint,
    readonly workflowType: string,
    readonly step: string,
    readonly error: string,
  ) {
    super(`workflow ${workflowId} (${workflowType}) failed at ${step || 'its start'}:\n${error}`);
  }
}

/** The workflow was cancelled. `error` is what its code raised while it cleaned up, if it did. */
export class WorkflowCancelled extends WorkflowError {
  override name = 'WorkflowCancelled';

  constructor(
    readonly workflowId: bigint,
    readonly workflowType: string,
    readonly error: string | undefined,
  ) {
    super(`workflow ${workflowId} (${workflowType}) was cancelled${error === undefined ? '' : `:\n${error}`}`);
  }
}

/** The connection ended before the answer came. Whether a call arrived is not known; ask again when connected. */
export class Disconnected extends WorkflowError {
  override name = 'Disconnected';

  constructor(cause?: unknown) {
    const why = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : '';
    super(`the connection to the game has ended${why}; make a WorkflowClient of the next one`, { cause });
  }
}

/** The bindings have not what a method needs. */
export class NotOpen extends WorkflowError {
  override name = 'NotOpen';

  constructor(reducer: string) {
    const testing = reducer.startsWith('debug_') || reducer.endsWith('_test');
    super(
      `the bindings of this game have no ${reducer}: open it with install(module, [...], ` +
        `${testing ? 'testing=True, ' : ''}access=["${reducer}"]), or for an operator's tool generate them with ` +
        '--include-private',
    );
  }
}
