// Where the list has its rows from: a few workflows are followed as a whole; of many only those in sight, by pages of ids
// from SQL.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { serverNow } from '../../live/clock';
import { useNow, useRows, type Database } from '../../live/hooks';
import type { Row } from '../../module/values';
import { isUnanswered } from '../../session';
import { conditions, equalities, matches, NO_FILTER, queryOf, type Filter } from './filter';

/** Of many, ids come in blocks of so many. */
const BLOCK = 100;
const BLOCKS_MAX = 60;
const REFRESH_MS = 2500;

export const ORDERS: Record<string, { title: string; sql: string; compare: (a: Row, b: Row) => number }> = {
  new: { title: 'Newest', sql: 'id DESC', compare: (a, b) => compare(b.id, a.id) },
  old: { title: 'Oldest', sql: 'id', compare: (a, b) => compare(a.id, b.id) },
  changed: {
    title: 'Changed',
    sql: 'updated_at DESC, id DESC',
    compare: (a, b) => compare(b.updated_at.microsSinceUnixEpoch, a.updated_at.microsSinceUnixEpoch) || compare(b.id, a.id),
  },
};

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

export interface Source {
  total: number | null;
  /** The row at a place; null while it is not here yet. */
  row: (index: number) => Row | null;
  id: (index: number) => bigint | null;
  timers: Map<bigint, bigint>;
  seen: (first: number, last: number) => void;
  error: string | null;
}

const idsWhere = (column: string, ids: bigint[]): string => ids.map((id) => `${column} = ${id}`).join(' OR ');

/** All of them, kept up to date; `order` is a name of `ORDERS`. */
export function useFollowed(filter: Filter, order: string, active: boolean): Source {
  const where = equalities(filter);
  const condition = where.length ? ` WHERE ${where.join(' AND ')}` : '';
  const equal: Filter = { ...NO_FILTER, status: filter.status, type: filter.type, entity: filter.entity };
  const live = useRows('workflow', active ? [`SELECT * FROM workflow${condition}`] : [], (row) => matches(row, equal, undefined, 0), `${active}${condition}`);
  const everything = where.length === 0;
  const ids = useMemo(() => (everything ? [] : live.rows.map((row) => row.id as bigint).sort(compare)), [everything, live.rows]);
  const timers = useTimers(!active ? [] : everything ? ['SELECT * FROM workflow_timer'] : ids.length ? [`SELECT * FROM workflow_timer WHERE ${idsWhere('workflow_id', ids)}`] : []);
  const second = useNow();
  const now = filter.age || filter.timer ? second : 0; // what does not depend on the time is not looked at each second
  const found = useMemo(
    () => live.rows.filter((row) => matches(row, filter, timers.next.get(row.id), now)).sort(ORDERS[order]!.compare),
    [live.rows, filter, order, timers.next, now],
  );
  return {
    total: live.ready && (timers.ready || filter.timer === null) ? found.length : null,
    row: (index) => found[index] ?? null,
    id: (index) => found[index]?.id ?? null,
    timers: timers.next,
    seen: () => undefined,
    error: live.error,
  };
}

/** The next deadline of each workflow, in microseconds since 1970. */
function useTimers(queries: string[]): { next: Map<bigint, bigint>; ready: boolean } {
  const { rows, ready } = useRows('workflow_timer', queries);
  return useMemo(() => {
    const next = new Map<bigint, bigint>();
    for (const timer of rows) {
      const due = timer.due_at.microsSinceUnixEpoch as bigint;
      const known = next.get(timer.workflow_id);
      if (known === undefined || due < known) next.set(timer.workflow_id, due);
    }
    return { next, ready };
  }, [rows, ready]);
}

/** Ids by pages; rows of those in sight. */
export function usePaged({ api, name }: Database, filter: Filter, order: string, active: boolean): Source {
  const key = `${order}?${new URLSearchParams(queryOf(filter))}`;
  const from = useCallback(() => {
    const where = conditions(filter, serverNow());
    return `FROM workflow${where.length ? ` WHERE ${where.join(' AND ')}` : ''}`;
  }, [filter]);
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
        const { rows } = await api.sql(name, `SELECT id ${from()} ORDER BY ${ORDERS[order]!.sql} LIMIT ${BLOCK} OFFSET ${block * BLOCK}`);
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
        if (!isUnanswered(error)) setState((last) => ({ ...last, key, error: (error as Error).message }));
      } finally {
        asked.current.delete(name_);
      }
    },
    [api, name, key, from, order],
  );

  const count = useCallback(async () => {
    try {
      const { rows } = await api.sql(name, `SELECT count(*) ${from()}`);
      const total = Number(rows[0]![0]);
      setState((last) => (last.key === key ? (last.total === total ? last : { ...last, total }) : { key, total, blocks: new Map(), error: null }));
    } catch (error) {
      if (!isUnanswered(error)) setState((last) => ({ ...last, key, error: (error as Error).message }));
    }
  }, [api, name, key, from]);

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
    timers: timers.next,
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

