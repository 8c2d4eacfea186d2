/** The queries that the client asks: what a filter means in SQL, and for a row. Pure functions. */
import type { WorkflowConnection, WorkflowRow, WorkflowTimerRow } from './bindings.js';
import type { Query } from './live.js';

/** Which workflows; all conditions that are given must hold. */
export interface WorkflowFilter<K extends string = string> {
  id?: bigint | undefined;
  entityId?: bigint | undefined;
  type?: K | undefined;
  correlationId?: string | undefined;
  parentId?: bigint | undefined;
}

const text = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** The workflows of a filter. Without a condition: all. */
export function workflowQuery({ db }: WorkflowConnection, filter: WorkflowFilter): Query<WorkflowRow> {
  const { id, entityId, type, correlationId, parentId } = filter;
  const conditions = [
    id !== undefined && `workflow.id = ${id}`,
    entityId !== undefined && `workflow.entity_id = ${entityId}`,
    type !== undefined && `workflow.workflow_type = ${text(type)}`,
    correlationId !== undefined && `workflow.correlation_id = ${text(correlationId)}`,
    parentId !== undefined && `workflow.parent_id = ${parentId}`,
  ].filter((condition) => condition !== false);
  return {
    table: db.workflow,
    sql: `SELECT * FROM workflow${conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : ''}`,
    key: (row) => row.id,
    matches: (row) =>
      (id === undefined || row.id === id) &&
      (entityId === undefined || row.entityId === entityId) &&
      (type === undefined || row.workflowType === type) &&
      (correlationId === undefined || row.correlationId === correlationId) &&
      (parentId === undefined || row.parentId === parentId),
  };
}

/** The timers of a workflow. */
export function timerQuery({ db }: WorkflowConnection, workflowId: bigint): Query<WorkflowTimerRow> {
  return {
    table: db.workflowTimer,
    sql: `SELECT * FROM workflow_timer WHERE workflow_timer.workflow_id = ${workflowId}`,
    key: (row) => row.scheduledId,
    matches: (row) => row.workflowId === workflowId,
  };
}
