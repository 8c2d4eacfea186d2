// One workflow: what it does, why, and what happens next.

import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { useDatabase, useNow, useRows, useTable } from '../live/hooks';
import { bytesText, parseExact, timeText, type Row } from '../module/values';
import { go, href } from '../route';
import { Icon } from '../ui/icons';
import { Empty, isTyping, Mistake, Panel, Status, useKey, Waiting } from '../ui/parts';
import { Age, Countdown } from '../ui/time';
import { Tree } from '../ui/tree';
import { ActionButton, Confirm, SignalDialog } from './workflow/actions';
import { Code } from './workflow/Code';
import { Family } from './workflow/Family';
import { placeOf, readState } from './workflow/state';
import { Timeline, useTimeline } from './workflow/Timeline';
import { readWait, type Leaf, type Wait } from './workflow/wait';

const ENDED = new Set(['Completed', 'Cancelled']);
/** Of a gather of thousands, so many are listed. */
const WAITS_MAX = 50;

export function WorkflowPage({ id }: { id: bigint }) {
  const { name: database, description } = useDatabase();
  const self = useRows('workflow', [`SELECT * FROM workflow WHERE id = ${id}`], (row) => row.id === id, `${id}`);
  const row = self.rows[0];
  const [last, setLast] = useState<Row | null>(null);
  if (row && row !== last) setLast(row);
  useKey((event) => {
    if (!isTyping(event) && event.key === 'Escape') go(href(database, 'workflows'));
  });
  if (self.error !== null) return <Mistake title={`Workflow ${id} cannot be shown`}>{self.error}</Mistake>;
  if (!self.ready) return <Waiting>Workflow {`${id}`}</Waiting>;
  const shown = row ?? last;
  if (!shown) {
    return (
      <Empty icon="flow" title={`There is no workflow ${id}`}>
        It was deleted, or its retention is over. <a href={href(database, 'workflows')}>All workflows</a>
      </Empty>
    );
  }
  return <Shown row={shown} gone={row === undefined} info={description.workflows?.[shown.workflow_type]} />;
}

type Asked = 'signal' | 'cancel' | 'terminate' | 'delete' | null;

function Shown({ row, gone, info }: { row: Row; gone: boolean; info: NonNullable<ReturnType<typeof useDatabase>['description']['workflows']>[string] | undefined }) {
  const { name: database, description } = useDatabase();
  const id = row.id as bigint;
  const status = row.status.tag as string;
  const ended = ENDED.has(status) || gone;
  const [asked, setAsked] = useState<Asked>(null);
  const [chosen, setChosen] = useState<bigint | null>(null);
  const now = useNow();
  const timeline = useTimeline(id);
  const events = timeline.events;
  const at = chosen === null ? -1 : events.findIndex((event) => event.id === chosen);
  const event = at >= 0 ? events[at] : undefined;

  // Without a choice the state is the one of now; with one, that after the chosen event.
  const shownData = (event?.state_data ?? row.state_data) as Uint8Array;
  const previous = useMemo(() => (event ? events[at - 1] : lastOther(events, row.state_data)), [event, events, at, row.state_data]);
  const state = useMemo(() => readState(shownData), [shownData]);
  const before = useMemo(() => (previous ? readState(previous.state_data).values : null), [previous]);
  const step = (event?.step ?? row.current_step) as string;
  const place = placeOf(info, state, step);
  const line = place?.line ?? (event || ENDED.has(status) ? null : row.current_line || null);
  const wait = useMemo((): Wait => {
    const text = bytesText(row.wait_data);
    return readWait(text && !ended ? parseExact(text) : null);
  }, [row.wait_data, ended]);

  useKey((pressed) => {
    if (!isTyping(pressed) && pressed.key === 's' && !ended && info) {
      pressed.preventDefault();
      setAsked('signal');
    }
  });
  const awaited = wait.leaves.filter((leaf) => leaf.kind === 'signal').map((leaf) => leaf.name);
  const close = useCallback(() => setAsked(null), []);

  return (
    <div className="page workflow" data-testid="workflow" data-status={status}>
      <header className="bar workflow-head">
        <a className="icon-button" href={href(database, 'workflows')} aria-label="All workflows" title="All workflows (Esc)">
          <Icon name="back" />
        </a>
        <div className="workflow-title">
          <h2>
            {row.workflow_type} <span className="workflow-id">#{`${id}`}</span>
          </h2>
          <Status status={gone ? 'Deleted' : status} />
          {row.cancel_requested && !ended && status !== 'Cancelling' && <span className="badge tone-gold">cancel requested</span>}
          {row.test_mode && <span className="badge">manual</span>}
        </div>
        <dl className="facts">
          <Fact name="Step">{row.current_step && !ENDED.has(status) ? <code>{row.current_step}</code> : null}</Fact>
          <Fact name="Entity">{row.entity_id === undefined ? null : <a href={href(database, 'workflows', null, { entity: `${row.entity_id}` })}>{`${row.entity_id}`}</a>}</Fact>
          <Fact name="Correlation">{row.correlation_id ?? null}</Fact>
          <Fact name="Age">
            <Age micros={row.created_at.microsSinceUnixEpoch} now={now} />
          </Fact>
          <Fact name="Steps">{`${row.steps}`}</Fact>
          <Fact name="Version">{info ? `${info.version}` : null}</Fact>
          <Fact name="Unread signals">{ENDED.has(status) && row.unread_signals ? `${row.unread_signals}` : null}</Fact>
        </dl>
        <div className="bar-end actions">
          {status === 'Failed' && !gone && (
            <ActionButton name="workflow_resume" params={{ workflow_id: id }} done={`#${id} was resumed`} className="button-main" title="Run the failed step again">
              <Icon name="redo" size={13} /> Resume
            </ActionButton>
          )}
          {!ended && info && (
            <button className="button button-main" onClick={() => setAsked('signal')} title="Send a signal (s)">
              <Icon name="mail" size={13} /> Signal
            </button>
          )}
          {!ended && (
            <button className="button" disabled={status === 'Cancelling'} onClick={() => setAsked('cancel')}>
              <Icon name="stop" size={13} /> Cancel
            </button>
          )}
          {!ended && (status === 'Failed' || status === 'Cancelling') && (
            <button className="button" onClick={() => setAsked('terminate')}>
              Terminate
            </button>
          )}
          {!gone && ENDED.has(status) && (
            <button className="button" onClick={() => setAsked('delete')}>
              <Icon name="bin" size={13} /> Delete
            </button>
          )}
        </div>
      </header>

      {!info && <Mistake title={`The code of ${row.workflow_type} is not installed`}>Its workflows wait until it is again.</Mistake>}
      {row.error !== undefined && row.error !== null && <Failure text={row.error} failed={status === 'Failed'} />}

      <div className="workflow-columns">
        <div className="column column-timeline">
          <Timeline timeline={timeline} chosen={chosen} choose={setChosen} now={now} journal={description.workflows_journal !== false} />
        </div>
        <div className="column column-state">
          <Panel
            icon="tree"
            title={event?.step ? `State after ${timeline.more ? 'this event' : `event ${at + 1}`}` : event || ENDED.has(status) ? 'Last state' : 'State'}
            note={
              event ? (
                <button className="link" onClick={() => setChosen(null)}>
                  Show now
                </button>
              ) : before ? (
                'changes of the last step are marked'
              ) : undefined
            }
          >
            <div data-testid="state">
              <Tree value={state.values} before={before} types={{ init: info?.init.type ?? '', ...info?.source.variables }} empty="It has no variables yet." />
            </div>
          </Panel>
          {ENDED.has(status) && row.result !== undefined && row.result !== null && (
            <Panel icon="flow" title="Result" note={info?.result.type}>
              <Tree value={asRecord(parseExact(row.result))} before={null} />
            </Panel>
          )}
          <Waits row={row} wait={wait} ended={ended} />
          <Family row={row} />
        </div>
        <div className="column column-code">
          {place ? (
            <Panel icon="code" title={state.subroutine ?? row.workflow_type} note={`${place.source.file}${line ? `:${line}` : ''}`} className="panel-code">
              <Code source={place.source} line={line} failed={status === 'Failed' && !event} />
            </Panel>
          ) : null}
        </div>
      </div>

      {asked === 'signal' && info && <SignalDialog id={id} type={row.workflow_type} signals={info.signals} awaited={awaited} onClose={close} />}
      {asked === 'cancel' && (
        <Confirm title={`Cancel ${row.workflow_type} #${id}`} label="Cancel it" name="workflow_cancel" params={{ workflow_id: id }} done={`#${id} was cancelled`} onClose={close}>
          <p>
            <code>Cancelled</code> is raised where it waits. Its cleanup runs, and its children are cancelled with it, unless it
            started them to be left alone.
          </p>
        </Confirm>
      )}
      {asked === 'terminate' && (
        <Confirm title={`Terminate ${row.workflow_type} #${id}`} label="Terminate it" name="workflow_terminate" params={{ workflow_id: id }} done={`#${id} was terminated`} onClose={close}>
          <p>It ends at once. None of its code runs any more, its cleanup neither.</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${row.workflow_type} #${id}`}
          label="Delete it"
          name="workflow_delete"
          params={{ workflow_id: id }}
          done={`#${id} was deleted`}
          onClose={(called) => {
            close();
            if (called) go(href(database, 'workflows'));
          }}
        >
          <p>Its row and its timeline are deleted for ever.</p>
        </Confirm>
      )}
    </div>
  );
}

/** The last event after which the state was not as it is now. */
function lastOther(events: Row[], data: Uint8Array): Row | undefined {
  const now = bytesText(data);
  return events.findLast((one) => bytesText(one.state_data) !== now);
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : { value };

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The last line of a traceback is what went wrong; the rest is where. */
function Failure({ text, failed }: { text: string; failed: boolean }) {
  const lines = text.trimEnd().split('\n');
  return (
    <details className="failure" open={failed && lines.length < 30} data-testid="failure">
      <summary>
        <Icon name="warn" />
        <strong>{lines.at(-1)}</strong>
        <span className="quiet">{failed ? 'It is parked where it was before that step. Mend the code, then resume it.' : 'Its last error.'}</span>
      </summary>
      {lines.length > 1 && <pre>{lines.slice(0, -1).join('\n')}</pre>}
    </details>
  );
}

function Waits({ row, wait, ended }: { row: Row; wait: Wait; ended: boolean }) {
  const { description } = useDatabase();
  const id = row.id as bigint;
  const own = (one: Row): boolean => one.workflow_id === id;
  const where = `WHERE workflow_id = ${id}`;
  const timers = useRows('workflow_timer', [`SELECT * FROM workflow_timer ${where}`], own).rows;
  const inbox = useRows('workflow_signal', [`SELECT * FROM workflow_signal ${where}`], own).rows;
  const subscribed = useRows('workflow_subscription', [`SELECT * FROM workflow_subscription ${where}`], own).rows;
  const calls = useRows('pending_procedure', [`SELECT * FROM pending_procedure ${where}`], own).rows;
  const attributes = useRows('workflow_attribute', [`SELECT * FROM workflow_attribute ${where}`], own).rows;
  const expires = useTable('workflow_expiry');
  const expiry = useRows('workflow_expiry', expires && ended ? [`SELECT * FROM workflow_expiry ${where}`] : [], own).rows[0];
  const testing = description.workflows_testing === true;
  const withoutRow = wait.leaves.filter((leaf) => leaf.kind !== 'timer');

  return (
    <>
      {!ended && (
        <Panel icon="clock" title="Waits for" note={{ one: undefined, any: 'the first of these', all: 'all of these' }[wait.how]}>
          {wait.leaves.length === 0 && timers.length === 0 ? (
            <p className="quiet pad">Nothing: its next step is about to run.</p>
          ) : (
            <ul className="rows" data-testid="waits">
              {timers
                .toSorted((a, b) => (a.due_at.microsSinceUnixEpoch < b.due_at.microsSinceUnixEpoch ? -1 : 1))
                .map((timer) => (
                  <li key={`${timer.scheduled_id}`} className="row-timer">
                    <Icon name="clock" size={14} />
                    <code>{timer.timer_name}</code>
                    <span className="row-end">
                      {row.test_mode && <span className="quiet">by hand</span>}
                      {!row.test_mode && <Countdown micros={timer.due_at.microsSinceUnixEpoch} everyMs={500} />}
                      {testing && (
                        <ActionButton name="debug_fire_timer" params={{ workflow_id: id, timer_name: timer.timer_name }} done={`${timer.timer_name} was fired`} className="button-small" title="Let it be due now">
                          <Icon name="play" size={12} /> Fire
                        </ActionButton>
                      )}
                    </span>
                  </li>
                ))}
              {withoutRow.slice(0, WAITS_MAX).map((leaf, at) => (
                <WaitRow key={at} leaf={leaf} />
              ))}
              {withoutRow.length > WAITS_MAX && <li className="quiet">and {withoutRow.length - WAITS_MAX} more</li>}
            </ul>
          )}
        </Panel>
      )}
      {calls.length > 0 && (
        <Panel icon="gear" title="Procedures">
          <ul className="rows" data-testid="procedures">
            {calls.map((call) => (
              <li key={`${call.id}`} className="row-call">
                <div className="row-line">
                  <code>{call.procedure}</code>
                  <Status status={call.status.tag} />
                  <span className="muted">
                    attempt {call.attempt} of {call.attempts_max}
                  </span>
                  <span className="row-end">
                    {call.status.tag === 'Pending' && call.scheduled_at.tag === 'Time' && call.queue === undefined && (
                      <>
                        next <Countdown micros={call.scheduled_at.value.microsSinceUnixEpoch} />
                      </>
                    )}
                    {call.queue !== undefined && <span className="badge">queue {call.queue}</span>}
                    {call.worker !== undefined && <span className="quiet">by {call.worker}</span>}
                  </span>
                </div>
                <div className="mono muted cut" title={call.arguments}>
                  {call.arguments}
                </div>
                {call.last_error && <pre className="row-error">{call.last_error}</pre>}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {inbox.length > 0 && (
        <Panel icon="mail" title="Inbox" note={`${inbox.length} unread`}>
          <ul className="rows" data-testid="inbox">
            {inbox.slice(0, 100).map((signal) => (
              <li key={`${signal.id}`}>
                <code>{signal.signal}</code>
                <span className="mono muted cut" title={signal.payload}>
                  {signal.payload}
                </span>
                <span className="row-end quiet">{timeText(signal.arrived_at.microsSinceUnixEpoch).slice(11, 19)}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {subscribed.length > 0 && (
        <Panel icon="ear" title="Subscribed to">
          <ul className="rows">
            {subscribed.map((one) => (
              <li key={`${one.id}`}>
                <code>{one.signal}</code>
                <span className="mono muted">{one.key}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {attributes.length > 0 && (
        <Panel icon="table" title="Attributes">
          <ul className="rows">
            {attributes.map((one) => (
              <li key={`${one.id}`}>
                <code>{one.name}</code>
                <span className="mono muted cut">{one.value}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {expiry?.scheduled_at.tag === 'Time' && (
        <p className="quiet pad">
          Deleted in <Countdown micros={expiry.scheduled_at.value.microsSinceUnixEpoch} />, when its retention is over.
        </p>
      )}
    </>
  );
}

function WaitRow({ leaf }: { leaf: Leaf }) {
  const { name: database } = useDatabase();
  switch (leaf.kind) {
    case 'signal':
      return (
        <li>
          <Icon name="ear" size={14} />
          <code>{leaf.name}</code>
          <span className="row-end quiet">signal</span>
        </li>
      );
    case 'child':
      return (
        <li>
          <Icon name="flow" size={14} />
          <a href={href(database, 'workflows', leaf.id)}>
            {leaf.name} #{`${leaf.id}`}
          </a>
          <span className="row-end quiet">{leaf.done ? 'has ended' : 'child'}</span>
        </li>
      );
    case 'call':
      return (
        <li>
          <Icon name="gear" size={14} />
          <code>{leaf.name}</code>
          <span className="row-end quiet">{leaf.done ? 'has ended' : 'procedure'}</span>
        </li>
      );
    default:
      return null;
  }
}

