// The tables with their rows, live, and what is declared of them.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useDatabase, useMetrics, useRows } from '../live/hooks';
import { kindText, type TableInfo } from '../module/schema';
import { compareKeys, sortKey } from '../module/values';
import { go, href, type Route } from '../route';
import { isUnanswered } from '../session';
import { Grid } from '../ui/Grid';
import { Icon } from '../ui/icons';
import { Empty, Mistake, Waiting } from '../ui/parts';
import { grouped } from '../ui/time';

/** Up to so many rows are followed; of more, pages are asked in SQL. */
const FOLLOWED_MAX = 2000;
const BLOCK = 100;
const REFRESH_MS = 3000;

const quoted = (name: string): string => `"${name}"`;

export function Tables({ route }: { route: Route }) {
  const { schema } = useDatabase();
  const { rows } = useMetrics();
  const [filter, setFilter] = useState('');
  const isEngine = (table: TableInfo): boolean => /^(workflow($|_)|pending_procedure$)/.test(table.name);
  const sorted = schema.tables.toSorted((a, b) => Number(isEngine(a)) - Number(isEngine(b)) || a.name.localeCompare(b.name));
  const found = sorted.filter((table) => table.name.includes(filter));
  const chosen = schema.tables.find((table) => table.name === route.item) ?? sorted[0];
  return (
    <div className="page split">
      <nav className="split-list" aria-label="Tables">
        <span className="search">
          <Icon name="search" size={14} />
          <input aria-label="Find a table" placeholder="Find a table" value={filter} onChange={(event) => setFilter(event.target.value)} />
        </span>
        <ul>
          {found.map((table) => (
            <li key={table.name}>
              <a href={href(route.database, 'tables', table.name)} aria-current={table === chosen ? 'page' : undefined} className={isEngine(table) ? 'is-engine' : ''}>
                <span>{table.name}</span>
                {!table.isPublic && <Icon name="lock" size={12} />}
                <b>{table.isView ? 'view' : table.isEvent ? 'events' : rows.has(table.name) ? grouped(rows.get(table.name)!) : ''}</b>
              </a>
            </li>
          ))}
        </ul>
        <select className="split-select" aria-label="Table" value={chosen?.name} onChange={(event) => go(href(route.database, 'tables', event.target.value))}>
          {sorted.map((table) => (
            <option key={table.name}>{table.name}</option>
          ))}
        </select>
      </nav>
      {chosen ? (
        <OneTable key={chosen.name} table={chosen} count={rows.get(chosen.name) ?? null} query={route.query} />
      ) : (
        <Empty icon="table" title="The module has no tables" />
      )}
    </div>
  );
}

type Sort = { column: number; down: boolean } | null;

function OneTable({ table, count, query }: { table: TableInfo; count: number | null; query: URLSearchParams }) {
  const { schema, name: database } = useDatabase();
  const [tab, setTab] = useState<'rows' | 'schema'>('rows');
  const where = query.get('where') ?? '';
  const [typed, setTyped] = useState(where);
  const [sort, setSort] = useState<Sort>(null);
  // A big table stays paged when it shrinks a little.
  const paged = useRef(false);
  paged.current = !table.isView && !table.isEvent && (count ?? 0) > (paged.current ? FOLLOWED_MAX * 0.8 : FOLLOWED_MAX);
  const waitForCount = count === null && !table.isView && !table.isEvent;
  const apply = (text: string): void => go(href(database, 'tables', table.name, { where: text.trim() }), true);
  const marks = Object.fromEntries(table.columns.map(({ name }) => [name, name === table.primaryKey ? 'key' : table.indexes.some((index) => index.columns[0] === name) ? 'idx' : '']));

  return (
    <section className="split-main" aria-label={table.name}>
      <header className="bar">
        <h2>{table.name}</h2>
        <div className="tabs" role="tablist">
          <button role="tab" aria-selected={tab === 'rows'} onClick={() => setTab('rows')}>
            Rows
          </button>
          <button role="tab" aria-selected={tab === 'schema'} onClick={() => setTab('schema')}>
            Schema
          </button>
        </div>
        {tab === 'rows' && (
          <form
            className="where"
            onSubmit={(event) => {
              event.preventDefault();
              apply(typed);
            }}
          >
            <label htmlFor="where">WHERE</label>
            <input
              id="where"
              data-search
              spellCheck={false}
              autoComplete="off"
              placeholder={exampleOf(table)}
              value={typed}
              onChange={(event) => {
                setTyped(event.target.value);
                if (event.target.value === '') apply('');
              }}
            />
          </form>
        )}
      </header>
      {tab === 'schema' ? (
        <Declared table={table} />
      ) : waitForCount ? (
        <Waiting />
      ) : paged.current ? (
        <PagedRows table={table} where={where} sort={sort} setSort={setSort} marks={marks} />
      ) : (
        <FollowedRows table={table} where={where} sort={sort} setSort={setSort} marks={marks} />
      )}
      <span className="visually-hidden">{schema.tables.length} tables</span>
    </section>
  );
}

function exampleOf(table: TableInfo): string {
  const key = table.columns.find(({ name }) => name === table.primaryKey) ?? table.columns[0];
  return key ? (key.kind.tag === 'string' ? `${key.name} = 'text'` : `${key.name} = 7`) : '';
}

interface RowsProps {
  table: TableInfo;
  where: string;
  sort: Sort;
  setSort: (sort: Sort) => void;
  marks: Record<string, string>;
}

const nextSort = (sort: Sort, column: number): Sort => (sort?.column !== column ? { column, down: false } : sort.down ? null : { column, down: true });

function FollowedRows({ table, where, sort, setSort, marks }: RowsProps) {
  const { schema } = useDatabase();
  const live = useRows(table.name, [`SELECT * FROM ${quoted(table.name)}${where ? ` WHERE ${where}` : ''}`], undefined, where);
  const sorted = useMemo(() => {
    if (table.isEvent && sort === null) return live.rows;
    const column = sort === null ? table.columns.find(({ name }) => name === table.primaryKey) : table.columns[sort.column];
    if (!column) return live.rows;
    const keyed = live.rows.map((row) => ({ row, key: sortKey(column.kind, row[column.name], schema) }));
    keyed.sort((a, b) => (sort?.down ? compareKeys(b.key, a.key) : compareKeys(a.key, b.key)));
    return keyed.map(({ row }) => row);
  }, [live.rows, sort, table, schema]);
  if (live.error) return <Mistake title="The filter is refused">{live.error}</Mistake>;
  if (!live.ready) return <Waiting />;
  if (sorted.length === 0) {
    return (
      <Empty icon="table" title={table.isEvent ? 'No event yet' : where ? 'No row is like that' : 'The table is empty'}>
        {table.isEvent ? 'Events are shown from now on, as they come.' : null}
      </Empty>
    );
  }
  return (
    <>
      <Grid
        label={table.name}
        columns={table.columns}
        schema={schema}
        count={sorted.length}
        marks={marks}
        row={(index) => table.columns.map(({ name }) => sorted[index]?.[name])}
        sort={sort}
        onSort={(column) => setSort(nextSort(sort, column))}
      />
      <footer className="foot">{grouped(sorted.length)} {sorted.length === 1 ? 'row' : 'rows'}, live</footer>
    </>
  );
}

function PagedRows({ table, where, sort, setSort, marks }: RowsProps) {
  const { api, name, schema } = useDatabase();
  const condition = where ? ` WHERE ${where}` : '';
  const order = sort ? quoted(table.columns[sort.column]!.name) : quoted(table.primaryKey ?? table.columns[0]!.name);
  const key = `${condition}/${order}/${sort?.down ?? false}`;
  const [state, setState] = useState<{ key: string; total: number | null; blocks: Map<number, unknown[][]>; error: string | null }>({ key, total: null, blocks: new Map(), error: null });
  const range = useRef<[number, number]>([0, 0]);
  const [wanted, setWanted] = useState('0-0');

  const refresh = useCallback(
    async (signal: AbortSignal): Promise<void> => {
      try {
        const from = `FROM ${quoted(table.name)}${condition}`;
        const numbers: number[] = [];
        for (let block = range.current[0]; block <= range.current[1]; block += 1) numbers.push(block);
        const [total, ...found] = await Promise.all([
          api.sql(name, `SELECT count(*) ${from}`, signal),
          ...numbers.map((block) => api.sql(name, `SELECT * ${from} ORDER BY ${order}${sort?.down ? ' DESC' : ''} LIMIT ${BLOCK} OFFSET ${block * BLOCK}`, signal)),
        ]);
        if (signal.aborted) return;
        setState((last) => {
          const blocks = new Map(last.key === key ? [...last.blocks].slice(-20) : []);
          numbers.forEach((block, at) => blocks.set(block, found[at]!.rows));
          return { key, total: Number(total!.rows[0]![0]), blocks, error: null };
        });
      } catch (error) {
        if (!signal.aborted && !isUnanswered(error)) setState((last) => ({ ...last, key, error: (error as Error).message }));
      }
    },
    [api, name, table.name, condition, order, sort?.down, key],
  );
  useEffect(() => {
    const control = new AbortController();
    const soon = setTimeout(() => void refresh(control.signal), 60);
    const timer = setInterval(() => document.hidden || void refresh(control.signal), REFRESH_MS);
    return () => {
      clearTimeout(soon);
      clearInterval(timer);
      control.abort();
    };
  }, [refresh, wanted]);
  const onRange = useCallback((first: number, last: number) => {
    range.current = [Math.floor(first / BLOCK), Math.floor(Math.max(first, last - 1) / BLOCK)];
    setWanted(range.current.join('-'));
  }, []);

  if (state.error && state.key === key) return <Mistake title="The filter is refused">{state.error}</Mistake>;
  if (state.key !== key || state.total === null) return <Waiting />;
  return (
    <>
      <Grid
        label={table.name}
        columns={table.columns}
        schema={schema}
        count={state.total}
        marks={marks}
        row={(index) => state.blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK] ?? null}
        sort={sort}
        onSort={(column) => setSort(nextSort(sort, column))}
        onRange={onRange}
      />
      <footer className="foot">{grouped(state.total)} rows; those in sight are read again every {REFRESH_MS / 1000} seconds</footer>
    </>
  );
}

function Declared({ table }: { table: TableInfo }) {
  const { schema, name } = useDatabase();
  return (
    <div className="declared">
      <p className="muted">
        {table.isView ? 'A view' : table.isEvent ? 'An event table: its rows are sent to those who follow it, and are not kept' : 'A table'}
        {table.isPublic ? '; clients may see it.' : '; private: clients do not know that it exists.'}
        {table.schedule && (
          <>
            {' '}
            Each of its rows calls <a href={href(name, 'calls', table.schedule.call)}>{table.schedule.call}</a> when <code>{table.schedule.at}</code> says.
          </>
        )}
      </p>
      <table className="plain">
        <thead>
          <tr>
            <th>Column</th>
            <th>Type</th>
            <th></th>
          </tr>
        </thead>
        <tbody>
          {table.columns.map((column) => (
            <tr key={column.name}>
              <td className="mono">{column.name}</td>
              <td className="mono tone-type">{kindText(column.kind, schema)}</td>
              <td className="muted">
                {[
                  column.name === table.primaryKey && 'primary key',
                  table.autoInc.includes(column.name) && 'counted up',
                  column.name !== table.primaryKey && table.indexes.some((index) => index.unique && index.columns.join() === column.name) && 'unique',
                  table.indexes.some((index) => !index.unique && index.columns.join() === column.name) && 'indexed',
                ]
                  .filter(Boolean)
                  .join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {table.indexes.length > 0 && (
        <table className="plain">
          <thead>
            <tr>
              <th>Index</th>
              <th>Columns</th>
              <th></th>
            </tr>
          </thead>
          <tbody>
            {table.indexes.map((index) => (
              <tr key={index.name}>
                <td className="mono">{index.name}</td>
                <td className="mono">{index.columns.join(', ')}</td>
                <td className="muted">{index.unique ? 'unique' : ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
