// The list of workflows. A few are followed as a whole; of many only those in sight, by pages of ids from SQL.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useDatabase, useMetrics, useNow, useRows, type Database } from '../live/hooks';
import type { Row } from '../module/values';
import { go, href, type Route } from '../route';
import { Icon } from '../ui/icons';
import { Empty, isTyping, Mistake, Status, useKey, Waiting } from '../ui/parts';
import { Age, Countdown, grouped } from '../ui/time';
import { VirtualList, type ListHandle } from '../ui/VirtualList';
import { StartDialog } from './workflow/StartDialog';

/** Up to so many workflows are followed at once. */
const FOLLOWED_MAX = 800;
/** Of more, ids come in blocks of so many. */
const BLOCK = 100;
const BLOCKS_MAX = 60;
const REFRESH_MS = 2500;
const ROW_HEIGHT = 30;
export const STATUSES = ['Suspended', 'Cancelling', 'Failed', 'Completed', 'Cancelled'] as const;

/** Those that are not offered while there are none. */
const RARE = new Set<string>(['Cancelling', 'Cancelled']);

interface Filter {
  status: string;
  type: string;
  entity: string;
  search: string;
  order: string;
}

const ORDERS: Record<string, { title: string; sql: string; compare: (a: Row, b: Row) => number }> = {
  new: { title: 'Newest', sql: 'id DESC', compare: (a, b) => compare(b.id, a.id) },
  old: { title: 'Oldest', sql: 'id', compare: (a, b) => compare(a.id, b.id) },
  changed: {
    title: 'Changed',
    sql: 'updated_at DESC, id DESC',
    compare: (a, b) => compare(b.updated_at.microsSinceUnixEpoch, a.updated_at.microsSinceUnixEpoch) || compare(b.id, a.id),
  },
};

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

function filterOf(query: URLSearchParams): Filter {
  const order = query.get('order') ?? '';
  return {
    status: query.get('status') ?? '',
    type: query.get('type') ?? '',
    entity: query.get('entity') ?? '',
    search: query.get('q') ?? '',
    order: order in ORDERS ? order : 'new',
  };
}

/** What clients may subscribe to: equalities. */
function equalities({ status, type, entity }: Filter): string[] {
  return [
    ...(status ? [`status = ${sqlText(status)}`] : []),
    ...(type ? [`workflow_type = ${sqlText(type)}`] : []),
    ...(/^\d+$/.test(entity) ? [`entity_id = ${entity}`] : []),
  ];
}

/** The search in the SQL of the storage engine. */
function searchSql(search: string): string[] {
  if (search === '') return [];
  const like = sqlText(`%${search.replace(/[%_\\]/g, '\\$&')}%`);
  const texts = ['workflow_type', 'correlation_id', 'current_step'].map((column) => `${column} LIKE ${like} ESCAPE '\\'`);
  const number = search.replace(/^#/, '');
  return [`(${[...(/^\d{1,18}$/.test(number) ? [`id = ${number}`, `entity_id = ${number}`] : []), ...texts].join(' OR ')})`];
}

function matches(row: Row, { status, type, entity, search }: Filter): boolean {
  if (status && row.status.tag !== status) return false;
  if (type && row.workflow_type !== type) return false;
  if (/^\d+$/.test(entity) && String(row.entity_id) !== entity) return false;
  if (!search) return true;
  const number = search.replace(/^#/, '');
  if (String(row.id) === number || String(row.entity_id) === number) return true;
  const wanted = search.toLowerCase();
  return [row.workflow_type, row.correlation_id ?? '', row.current_step].some((text) => text.toLowerCase().includes(wanted));
}

interface Source {
  total: number | null;
  /** The row at a place; null while it is not here yet. */
  row: (index: number) => Row | null;
  id: (index: number) => bigint | null;
  timers: Map<bigint, bigint>;
  seen: (first: number, last: number) => void;
  error: string | null;
}

const idsWhere = (column: string, ids: bigint[]): string => ids.map((id) => `${column} = ${id}`).join(' OR ');

function useFollowed(filter: Filter, active: boolean): Source {
  const where = equalities(filter);
  const condition = where.length ? ` WHERE ${where.join(' AND ')}` : '';
  const key = `${active}${condition}`;
  const live = useRows('workflow', active ? [`SELECT * FROM workflow${condition}`] : [], (row) => matches(row, { ...filter, search: '' }), key);
  const found = useMemo(
    () => live.rows.filter((row) => matches(row, filter)).sort(ORDERS[filter.order]!.compare),
    [live.rows, filter],
  );
  const everything = where.length === 0;
  const ids = useMemo(() => (everything ? [] : found.map((row) => row.id as bigint).sort(compare)), [everything, found]);
  const timers = useTimers(!active ? [] : everything ? ['SELECT * FROM workflow_timer'] : ids.length ? [`SELECT * FROM workflow_timer WHERE ${idsWhere('workflow_id', ids)}`] : []);
  return {
    total: live.ready ? found.length : null,
    row: (index) => found[index] ?? null,
    id: (index) => found[index]?.id ?? null,
    timers,
    seen: () => undefined,
    error: live.error,
  };
}

function useTimers(queries: string[]): Map<bigint, bigint> {
  const { rows } = useRows('workflow_timer', queries);
  return useMemo(() => {
    const next = new Map<bigint, bigint>();
    for (const timer of rows) {
      const due = timer.due_at.microsSinceUnixEpoch as bigint;
      const known = next.get(timer.workflow_id);
      if (known === undefined || due < known) next.set(timer.workflow_id, due);
    }
    return next;
  }, [rows]);
}

/** Ids by pages; rows of those in sight. */
function usePaged({ api, name }: Database, filter: Filter, active: boolean): Source {
  const where = [...equalities(filter), ...searchSql(filter.search)];
  const condition = where.length ? ` WHERE ${where.join(' AND ')}` : '';
  const key = `${filter.order}${condition}`;
  const [state, setState] = useState<{ key: string; total: number | null; blocks: Map<number, bigint[]>; error: string | null }>({
    key,
    total: null,
    blocks: new Map(),
    error: null,
  });
  const current = state.key === key ? state : { key, total: null, blocks: new Map<number, bigint[]>(), error: null };
  const wanted = useRef<[number, number]>([0, 0]);
  const asked = useRef(new Set<string>());

  const load = useCallback(
    async (block: number, again: boolean): Promise<void> => {
      const name_ = `${key}/${block}`;
      if (asked.current.has(name_)) return;
      asked.current.add(name_);
      try {
        const { rows } = await api.sql(name, `SELECT id FROM workflow${condition} ORDER BY ${ORDERS[filter.order]!.sql} LIMIT ${BLOCK} OFFSET ${block * BLOCK}`);
        setState((last) => {
          const before = last.key === key ? last : { key, total: null, blocks: new Map<number, bigint[]>(), error: null };
          const ids = rows.map(([id]) => id as bigint);
          if (again && before.blocks.get(block)?.join() === ids.join()) return last;
          const blocks = new Map(before.blocks);
          blocks.delete(block);
          blocks.set(block, ids);
          while (blocks.size > BLOCKS_MAX) blocks.delete(blocks.keys().next().value!);
          return { ...before, blocks, error: null };
        });
      } catch (error) {
        setState((last) => ({ ...last, key, error: (error as Error).message }));
      } finally {
        asked.current.delete(name_);
      }
    },
    [api, name, key, condition, filter.order],
  );

  const count = useCallback(async () => {
    try {
      const { rows } = await api.sql(name, `SELECT count(*) FROM workflow${condition}`);
      const total = Number(rows[0]![0]);
      setState((last) => (last.key === key ? (last.total === total ? last : { ...last, total }) : { key, total, blocks: new Map(), error: null }));
    } catch (error) {
      setState((last) => ({ ...last, key, error: (error as Error).message }));
    }
  }, [api, name, key, condition]);

  useEffect(() => {
    if (!active) return;
    const refresh = (): void => {
      if (document.hidden) return;
      void count();
      for (let block = wanted.current[0]; block <= wanted.current[1]; block += 1) void load(block, true);
    };
    refresh();
    const timer = setInterval(refresh, REFRESH_MS);
    return () => clearInterval(timer);
  }, [active, count, load]);

  const [range, setRange] = useState<[number, number]>([0, 0]);
  const seen = useCallback(
    (first: number, last: number) => {
      if (!active) return;
      const blocks: [number, number] = [Math.floor(first / BLOCK), Math.floor(Math.max(first, last - 1) / BLOCK)];
      wanted.current = blocks;
      setRange((now) => (now[0] === blocks[0] && now[1] === blocks[1] ? now : blocks));
      for (let block = blocks[0]; block <= blocks[1]; block += 1) void load(block, false);
    },
    [active, load],
  );

  const ids = useMemo(() => {
    const found: bigint[] = [];
    for (let block = range[0]; block <= range[1]; block += 1) found.push(...(current.blocks.get(block) ?? []));
    return found.slice(0, 4 * BLOCK);
  }, [current.blocks, range]);
  const settled = useSettled(active ? ids : [], 80);
  const sorted = useMemo(() => [...settled].sort(compare), [settled]);
  const live = useRows('workflow', sorted.length ? [`SELECT * FROM workflow WHERE ${idsWhere('id', sorted)}`] : []);
  const timers = useTimers(sorted.length ? [`SELECT * FROM workflow_timer WHERE ${idsWhere('workflow_id', sorted)}`] : []);
  const byId = useMemo(() => new Map(live.rows.map((row) => [row.id as bigint, row])), [live.rows]);
  const idAt = (index: number): bigint | null => current.blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK] ?? null;
  return {
    total: current.total,
    id: idAt,
    row: (index) => {
      const id = idAt(index);
      return id === null ? null : (byId.get(id) ?? null);
    },
    timers,
    seen,
    error: current.error ?? live.error,
  };
}

/** A value once it has not changed for a moment: while somebody scrolls, nothing is asked for each pixel. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export function Workflows({ route }: { route: Route }) {
  const database = useDatabase();
  const { workflows = {} } = database.description;
  const metrics = useMetrics();
  const text = route.query.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(text)), [text]);
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
  const followed = useFollowed(filter, known && !paged.current);
  const pages = usePaged(database, filter, known && paged.current);
  const source = paged.current ? pages : followed;
  const { total } = source;

  const set = (change: Partial<Filter>): void => {
    const { status, type, entity, search, order } = { ...filter, ...change };
    setSelected(-1);
    go(href(route.database, 'workflows', null, { status, type, entity, q: search, order: order === 'new' ? '' : order }), true);
  };
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
  const filtered = Boolean(filter.status || filter.type || filter.entity || filter.search);

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
          <select aria-label="Type" value={filter.type} onChange={(event) => set({ type: event.target.value })}>
            <option value="">All types</option>
            {types.map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
          <input aria-label="Entity" className="input-short" placeholder="Entity" inputMode="numeric" value={filter.entity} onChange={(event) => set({ entity: event.target.value.replace(/\D/g, '') })} />
          <span className="search">
            <Icon name="search" size={14} />
            <input data-search aria-label="Search" title="Search (/)" placeholder="Id, step, correlation" value={filter.search} onChange={(event) => set({ search: event.target.value })} onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()} />
          </span>
          <select aria-label="Order" value={filter.order} onChange={(event) => set({ order: event.target.value })}>
            {Object.entries(ORDERS).map(([order, { title }]) => (
              <option key={order} value={order}>
                {title}
              </option>
            ))}
          </select>
          <button className="button button-main" onClick={() => setStarting(true)} title="Start a workflow (n)">
            <Icon name="plus" size={13} /> Start
          </button>
        </div>
      </header>
      {source.error && <Mistake>{source.error}</Mistake>}
      {total === null ? (
        <Waiting />
      ) : total === 0 ? (
        <Empty icon="flow" title={filtered ? 'No workflow is like that' : 'No workflow is running'}>
          {filtered ? (
            <button className="link" onClick={() => set({ status: '', type: '', entity: '', search: '' })}>
              Show all
            </button>
          ) : (
            'They appear here as the game starts them. Or start one yourself.'
          )}
        </Empty>
      ) : (
        <VirtualList
          key={`${paged.current}${filter.order}`}
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
      <span className="mono step">{row.current_step}</span>
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
