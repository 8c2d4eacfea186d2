// A box for SQL, read only; what comes back can be taken along.

import { useEffect, useRef, useState } from 'react';
import { useDatabase } from '../live/hooks';
import { csvOf, jsonOf } from '../module/exports';
import type { Route } from '../route';
import type { SqlResult } from '../session';
import { Grid } from '../ui/Grid';
import { Icon } from '../ui/icons';
import { Empty, Mistake } from '../ui/parts';
import { grouped, seconds } from '../ui/time';

const HISTORY = 'gamedb.console.sql';
const HISTORY_MAX = 30;

function remembered(): string[] {
  try {
    return JSON.parse(localStorage.getItem(HISTORY) ?? '[]');
  } catch {
    return [];
  }
}

/** The answer is there, whether or not the browser has room to remember what was asked. */
function remember(history: string[]): void {
  try {
    localStorage.setItem(HISTORY, JSON.stringify(history));
  } catch {
    // it has not
  }
}

function download(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function Sql({ route }: { route: Route }) {
  const { api, name, schema, description } = useDatabase();
  const [history, setHistory] = useState(remembered);
  const first = description.workflows ? 'SELECT workflow_type, status, count(*) AS workflows\nFROM workflow\nGROUP BY workflow_type, status\nORDER BY workflows DESC' : `SELECT * FROM ${schema.tables[0]?.name ?? 'table'} LIMIT 100`;
  const [text, setText] = useState(route.query.get('q') ?? history[0] ?? first);
  const [result, setResult] = useState<SqlResult | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const run = async (): Promise<void> => {
    running.current?.abort();
    const control = (running.current = new AbortController());
    setBusy(true);
    try {
      const found = await api.sql(name, text, control.signal);
      setResult(found);
      setError(null);
      const next = [text, ...history.filter((one) => one !== text)].slice(0, HISTORY_MAX);
      setHistory(next);
      remember(next);
    } catch (problem) {
      if (!control.signal.aborted) setError((problem as Error).message);
    } finally {
      if (running.current === control) setBusy(false);
    }
  };

  return (
    <div className="page sql">
      <form
        className="sql-box"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <textarea
          aria-label="SQL"
          data-search
          spellCheck={false}
          rows={Math.min(12, Math.max(4, text.split('\n').length + 1))}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void run();
            }
          }}
        />
        <div className="sql-bar">
          <button className="button button-main" disabled={busy || text.trim() === ''}>
            <Icon name="play" size={13} /> {busy ? 'Running' : 'Run'} <kbd>Ctrl ↵</kbd>
          </button>
          {history.length > 0 && (
            <select aria-label="Earlier queries" value="" onChange={(event) => setText(event.target.value)}>
              <option value="" disabled>
                Earlier queries
              </option>
              {history.map((one) => (
                <option key={one} value={one}>
                  {one.replace(/\s+/g, ' ').slice(0, 90)}
                </option>
              ))}
            </select>
          )}
          <span className="quiet">All SQL of the storage engine, read only.</span>
          {result && (
            <span className="bar-end">
              <span className="muted" data-testid="sql-note">
                {grouped(result.rows.length)} {result.rows.length === 1 ? 'row' : 'rows'} in {seconds(result.micros / 1e6)}
              </span>
              <button type="button" className="button button-small" onClick={() => download(`${name}.csv`, 'text/csv', csvOf(result, schema))}>
                <Icon name="down" size={13} /> CSV
              </button>
              <button type="button" className="button button-small" onClick={() => download(`${name}.json`, 'application/json', jsonOf(result, schema))}>
                <Icon name="down" size={13} /> JSON
              </button>
            </span>
          )}
        </div>
      </form>
      {error !== null && <Mistake>{error}</Mistake>}
      {result === null ? (
        error === null && (
          <Empty icon="sql" title="Ask something">
            Values stand as they are stored: enum members by name, times as text, identities as hex.
          </Empty>
        )
      ) : result.rows.length === 0 ? (
        <Empty icon="table" title="No rows" />
      ) : (
        <Grid label="Result" columns={result.columns} schema={schema} count={result.rows.length} row={(index) => result.rows[index] ?? null} />
      )}
    </div>
  );
}
