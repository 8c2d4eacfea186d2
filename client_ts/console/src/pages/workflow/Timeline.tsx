// What happened to a workflow, the newest first. Of a long life only the end is followed, until more is asked for.
//
// The rows of `workflow_event` are all there is: `Workflows(db).at(id, number)` reads the same ones, in the same order. So
// nothing is computed here that could differ from it; `tests/console.test.ts` compares them event by event.

import { useMemo, useState } from 'react';
import { useAnswer, useDatabase, useRows } from '../../live/hooks';
import { timeText, type Row } from '../../module/values';
import { isTyping, Panel, useKey } from '../../ui/parts';
import { millis, roughly } from '../../ui/time';

const WINDOW = 200;

export interface TimelineData {
  /** The oldest first. */
  events: Row[];
  ready: boolean;
  /** Whether there are older ones, which are not here. */
  more: boolean;
  showMore: () => void;
}

export function useTimeline(id: bigint): TimelineData {
  const { api, name } = useDatabase();
  const [size, setSize] = useState(WINDOW);
  // The id of the oldest event in the window; 0 when all of them are.
  const first = useAnswer(async (signal) => {
    const { rows } = await api.sql(name, `SELECT id FROM workflow_event WHERE workflow_id = ${id} ORDER BY id DESC LIMIT 1 OFFSET ${size - 1}`, signal);
    return (rows[0]?.[0] as bigint | undefined) ?? 0n;
  }, `${id}/${size}`);
  const from = first.value;
  const queries = from === null ? [] : [`SELECT * FROM workflow_event WHERE workflow_id = ${id}${from > 0n ? ` AND id >= ${from}` : ''}`];
  const live = useRows('workflow_event', queries, (row) => row.workflow_id === id);
  const events = useMemo(() => live.rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)), [live.rows]);
  return { events, ready: live.ready && from !== null, more: (from ?? 0n) > 0n, showMore: () => setSize(size * 4) };
}

const TONES: Record<string, string> = {
  started: 'leaf',
  completed: 'leaf',
  failed: 'blood',
  attempt_failed: 'ember',
  cancelling: 'gold',
  cancelled: 'gold',
  terminated: 'gold',
  resumed: 'frost',
  continued: 'violet',
};

interface Props {
  timeline: TimelineData;
  chosen: bigint | null;
  choose: (id: bigint | null) => void;
  now: number;
  journal: boolean;
}

export function Timeline({ timeline, chosen, choose, now, journal }: Props) {
  const { events, ready, more, showMore } = timeline;
  const shown = events.toReversed();
  useKey((event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isTyping(event) || step === undefined || shown.length === 0) return;
    event.preventDefault();
    const at = chosen === null ? -1 : shown.findIndex((one) => one.id === chosen);
    const next = at + step;
    choose(next < 0 ? null : (shown[Math.min(next, shown.length - 1)]!.id as bigint));
  });
  return (
    <Panel icon="clock" title="Timeline" note={events.length ? `${events.length}${more ? '+' : ''} event${events.length === 1 ? '' : 's'}` : undefined} className="panel-timeline">
      {!journal ? (
        <p className="quiet pad">The game keeps no timeline: install(..., journal=False).</p>
      ) : ready && events.length === 0 ? (
        <p className="quiet pad">No events. Those that there were have been deleted.</p>
      ) : (
        <ol className="timeline" data-testid="timeline">
          {shown.map((event, index) => {
            const number = events.length - index;
            const older = shown[index + 1];
            const took = older ? millis(event.at.microsSinceUnixEpoch) - millis(older.at.microsSinceUnixEpoch) : null;
            return (
              <li key={`${event.id}`} className={`tone-${TONES[event.kind] ?? 'quiet'} ${event.id === chosen ? 'is-chosen' : ''}`}>
                <button onClick={() => choose(event.id === chosen ? null : event.id)} aria-pressed={event.id === chosen}>
                  <span className="timeline-dot" />
                  <span className="timeline-kind">{event.kind === 'step' ? (what(event.detail) ?? (event.detail ? 'result' : 'woke')) : event.kind.replace('_', ' ')}</span>
                  <span className="timeline-when">
                    {!more && <span title={`Workflows(db).at(${event.workflow_id}, ${number})`} data-number={number}>{number}</span>}
                    <time title={timeText(event.at.microsSinceUnixEpoch)}>{ago(event, now)}</time>
                  </span>
                  {rest(event) && <span className="timeline-detail">{rest(event)}</span>}
                  {event.step && (
                    <span className="timeline-step" title={event.step}>
                      waits at <code>{event.step}</code>
                    </span>
                  )}
                  {took !== null && took >= 1000 && <span className="timeline-gap">after {roughly(took)}</span>}
                </button>
              </li>
            );
          })}
          {more && (
            <li>
              <button className="link pad" onClick={showMore}>
                Show older events
              </button>
            </li>
          )}
        </ol>
      )}
    </Panel>
  );
}

/** What came, in a word: of `Bid(bidder=1, amount=5)` the `Bid`, of `<AuctionTimer.END: 'end'>` the timer. */
function what(detail: string): string | null {
  const timer = /^<(\w+\.\w+):/.exec(detail);
  if (timer) return timer[1]!;
  return /^([A-Za-z_][\w.]*)\(/.exec(detail)?.[1] ?? null;
}

/** What is to be said beside that word: the arguments; of a traceback its last line. */
function rest({ kind, detail }: Row): string {
  if (kind === 'failed') return detail.trimEnd().split('\n').at(-1) ?? '';
  if (kind !== 'step' || what(detail) === null) return detail;
  if (detail.startsWith('<')) return '';
  return detail.slice(detail.indexOf('(') + 1).replace(/\)$/, '').replace(/<(\w+\.\w+): [^<>]*>/g, '$1');
}

function ago(event: Row, now: number): string {
  const past = now - millis(event.at.microsSinceUnixEpoch);
  return past < 86_400_000 ? timeText(event.at.microsSinceUnixEpoch).slice(11, 19) : `${roughly(past)} ago`;
}
