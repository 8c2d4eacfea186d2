import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { serverNow } from './clock';
import type { Schema } from '../module/schema';
import type { Row } from '../module/values';
import type { Api } from '../session';
import type { Description } from './description';
import type { Following, Link, LinkState } from './link';
import type { Metrics } from './metrics';

/** All that a page knows of the database that it shows. */
export interface Database {
  name: string;
  api: Api;
  link: Link;
  schema: Schema;
  description: Description;
  metrics: Metrics;
}

const Context = createContext<Database | null>(null);
export const DatabaseProvider = Context.Provider;

export function useDatabase(): Database {
  const found = useContext(Context);
  if (found === null) throw new Error('there is no database here');
  return found;
}

export function useLinkState(link: Link | null): LinkState {
  return useSyncExternalStore(
    useCallback((listener) => link?.onState(listener) ?? (() => undefined), [link]),
    () => link?.state ?? 'connecting',
  );
}

export interface Live {
  rows: Row[];
  /** Whether the rows have come; once they have, they stay while something else is asked. */
  ready: boolean;
  error: string | null;
}

/**
 * Rows of one table, by queries on it. The cache has the rows of all queries on the table, so `keep` says which are
 * meant. With no queries, none. `key` tells when another thing is asked, of which old rows are no part.
 */
export function useRows(table: string, queries: string[], keep?: (row: Row) => boolean, key = ''): Live {
  const { link } = useDatabase();
  const text = queries.join(';');
  const keeps = useRef(keep);
  keeps.current = keep;
  const [live, setLive] = useState<Live & { key: string }>({ rows: [], ready: false, error: null, key });
  useEffect(() => {
    if (text === '') {
      setLive({ rows: [], ready: true, error: null, key });
      return;
    }
    let following: Following | null = null;
    const look = (): void => {
      if (following === null) return;
      if (following.error !== null) {
        const { error } = following;
        setLive((last) => (last.key === key ? { ...last, error } : { rows: [], ready: false, error, key }));
      } else if (following.applied) {
        const rows = link.rows(table);
        setLive({ rows: keeps.current ? rows.filter(keeps.current) : rows, ready: true, error: null, key });
      }
    };
    const stopListening = link.onTable(table, look);
    following = link.follow(queries, look);
    look();
    return () => {
      stopListening();
      following?.stop();
    };
    // `text` says all of `queries`
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [link, table, text, key]);
  return live.key === key ? live : EMPTY;
}

const EMPTY: Live = { rows: [], ready: false, error: null };

/** The server's time, again and again. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function useMetrics(): Metrics {
  const { metrics } = useDatabase();
  useSyncExternalStore(
    useCallback((listener) => metrics.listen(listener), [metrics]),
    () => metrics.version,
  );
  return metrics;
}

/** What an async function gives; asked again when `key` changes. Old answers stay until the new one is there. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, key: string): { value: T | null; error: string | null; key: string } {
  const [answer, setAnswer] = useState<{ value: T | null; error: string | null; key: string }>({ value: null, error: null, key: '' });
  const asks = useRef(ask);
  asks.current = ask;
  useEffect(() => {
    const control = new AbortController();
    asks.current(control.signal).then(
      (value) => !control.signal.aborted && setAnswer({ value, error: null, key }),
      (error: Error) => !control.signal.aborted && setAnswer((last) => ({ value: last.value, error: error.message, key })),
    );
    return () => control.abort();
  }, [key]);
  return answer;
}

export function useTable(name: string): boolean {
  const { schema } = useDatabase();
  return useMemo(() => schema.tables.some((table) => table.name === name), [schema, name]);
}
