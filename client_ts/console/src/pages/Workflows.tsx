// The list of workflows. A few are followed as a whole; of many only those in sight, by pages of ids from SQL.

import { useMemo, useRef, useState } from 'react';
import { useDatabase, useMetrics, useNow } from '../live/hooks';
import type { Row } from '../module/values';
import { go, href, type Route } from '../route';
import { Icon } from '../ui/icons';
import { Empty, isTyping, Mistake, Status, useKey, Waiting } from '../ui/parts';
import { Age, Countdown, grouped } from '../ui/time';
import { VirtualList, type ListHandle } from '../ui/VirtualList';
import { StartDialog } from './workflow/StartDialog';
import { filterOf, isFiltered, NO_FILTER, queryOf, STATUSES, type Filter } from './workflows/filter';
import { FilterFields } from './workflows/FilterFields';
import { ORDERS, useFollowed, usePaged } from './workflows/source';

/** Up to so many workflows are followed at once. */
const FOLLOWED_MAX = 800;
const ROW_HEIGHT = 30;

/** Those that are not offered while there are none. */
const RARE = new Set<string>(['Cancelling', 'Cancelled']);

export function Workflows({ route }: { route: Route }) {
  const database = useDatabase();
  const { workflows = {} } = database.description;
  const metrics = useMetrics();
  const text = route.query.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(text)), [text]);
  const asked = route.query.get('order') ?? '';
  const order = Object.hasOwn(ORDERS, asked) ? asked : 'new';
  const [selected, setSelected] = useState(-1);
  const [starting, setStarting] = useState(false);
  const list = useRef<ListHandle>(null);
  const now = useNow();

  const expected = metrics.workflows
    .filter(({ type, status }) => (!filter.type || type === filter.type) && (!filter.status || status === filter.status))
    .reduce((sum, { count }) => sum + count, 0);
  const known = metrics.version > 0;
  // Once paged, it stays so until there are clearly fewer, so as not to change at each of a busy game's commits.
  const paged = useRef(false);
  paged.current = known && expected > (paged.current ? FOLLOWED_MAX * 0.8 : FOLLOWED_MAX);
  const followed = useFollowed(filter, order, known && !paged.current);
  const pages = usePaged(database, filter, order, known && paged.current);
  const source = paged.current ? pages : followed;
  const { total } = source;

  const show = (wanted: Filter, by: string): void => {
    setSelected(-1);
    go(href(route.database, 'workflows', null, { ...queryOf(wanted), order: by === 'new' ? '' : by }), true);
  };
  const set = (change: Partial<Filter>): void => show({ ...filter, ...change }, order);
  const open = (index: number): void => {
    const id = source.id(index);
    if (id !== null) go(href(route.database, 'workflows', id));
  };

  useKey((event) => {
    if (isTyping(event) || total === null) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step !== undefined && total > 0) {
      event.preventDefault();
      const next = Math.max(0, Math.min(total - 1, selected + step));
      setSelected(next);
      list.current?.show(next);
    } else if (event.key === 'Enter' && selected >= 0 && (event.target as HTMLElement).tagName !== 'BUTTON') open(selected);
    else if (event.key === 'n') setStarting(true);
  });

  const counts = new Map<string, number>();
  for (const { type, status, count } of metrics.workflows) if (!filter.type || type === filter.type) counts.set(status, (counts.get(status) ?? 0) + count);
  const types = [...new Set([...Object.keys(workflows), ...metrics.workflows.map(({ type }) => type)])].sort();
  const filtered = isFiltered(filter);

  const head = (
    <>
      <span>Id</span>
      <span>Type</span>
      <span>Status</span>
      <span>Waits at</span>
      <span className="right">Entity</span>
      <span className="right">Timer</span>
      <span className="right">Changed</span>
      <span className="right">Age</span>
    </>
  );

  return (
    <div className="page workflows">
      <header className="bar">
        <div className="chips" role="group" aria-label="Status">
          <button className="chip" aria-pressed={filter.status === ''} onClick={() => set({ status: '' })}>
            All <b>{grouped([...counts.values()].reduce((a, b) => a + b, 0))}</b>
          </button>
          {STATUSES.filter((status) => !RARE.has(status) || counts.get(status) || filter.status === status).map((status) => (
            <button key={status} className="chip" aria-pressed={filter.status === status} onClick={() => set({ status: filter.status === status ? '' : status })}>
              <Status status={status} /> <b>{grouped(counts.get(status) ?? 0)}</b>
            </button>
          ))}
        </div>
        <div className="bar-end">
          <span className="search">
            <Icon name="search" size={14} />
            <input data-search aria-label="Search" title="Search (/)" placeholder="Id, step, correlation" value={filter.search} onChange={(event) => set({ search: event.target.value })} onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()} />
          </span>
          <button className="button button-main" onClick={() => setStarting(true)} title="Start a workflow (n)">
            <Icon name="plus" size={13} /> Start
          </button>
        </div>
        <div className="filters">
          <FilterFields filter={filter} set={set} types={types} />
          {filtered && total !== null && total > 0 && (
            <span className="filters-found">
              <span className="muted">{grouped(total)} found</span>
              <button className="link" onClick={() => show(NO_FILTER, order)}>
                Show all
              </button>
            </span>
          )}
          <select aria-label="Order" className="filters-order" value={order} onChange={(event) => show(filter, event.target.value)}>
            {Object.entries(ORDERS).map(([name, { title }]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </div>
      </header>
      {source.error && <Mistake>{source.error}</Mistake>}
      {total === null ? (
        <Waiting />
      ) : total === 0 ? (
        <Empty icon="flow" title={filtered ? 'No workflow is like that' : 'No workflow is running'}>
          {filtered ? (
            <button className="link" onClick={() => show(NO_FILTER, order)}>
              Show all
            </button>
          ) : (
            'They appear here as the game starts them. Or start one yourself.'
          )}
        </Empty>
      ) : (
        <VirtualList
          key={`${paged.current}${order}`}
          handle={list}
          label="Workflows"
          className="list-workflows"
          count={total}
          rowHeight={ROW_HEIGHT}
          head={head}
          onRange={source.seen}
          row={(index) => (
            <Line key={index} index={index} id={source.id(index)} row={source.row(index)} due={source.timers.get(source.id(index) ?? -1n)} now={now} selected={index === selected} database={route.database} />
          )}
        />
      )}
      {starting && <StartDialog type={filter.type || null} onClose={() => setStarting(false)} />}
    </div>
  );
}

interface LineProps {
  index: number;
  id: bigint | null;
  row: Row | null;
  due: bigint | undefined;
  now: number;
  selected: boolean;
  database: string;
}

function Line({ index, id, row, due, now, selected, database }: LineProps) {
  if (row === null || id === null) {
    return (
      <div className="line is-coming" role="row" aria-rowindex={index + 1}>
        <span className="id">{id === null ? '' : `${id}`}</span>
      </div>
    );
  }
  return (
    <a className={`line ${selected ? 'is-selected' : ''}`} role="row" aria-rowindex={index + 1} href={href(database, 'workflows', id)} data-id={`${id}`} data-status={row.status.tag} tabIndex={-1}>
      <span className="id">{`${id}`}</span>
      <span className="line-type">
        {row.workflow_type}
        {row.parent_id !== undefined && <span className="quiet" title={`child of ${row.parent_id}`}> ↳{`${row.parent_id}`}</span>}
        {row.test_mode && <span className="badge">manual</span>}
      </span>
      <span>
        <Status status={row.status.tag} />
      </span>
      <span className="mono step" title={row.current_step}>{row.current_step}</span>
      <span className="right mono">{row.entity_id === undefined ? '' : `${row.entity_id}`}</span>
      <span className="right timer">{row.test_mode && due !== undefined ? <span className="quiet">by hand</span> : due !== undefined ? <Countdown micros={due} /> : ''}</span>
      <span className="right muted">
        <Age micros={row.updated_at.microsSinceUnixEpoch} now={now} />
      </span>
      <span className="right muted">
        <Age micros={row.created_at.microsSinceUnixEpoch} now={now} />
      </span>
    </a>
  );
}
