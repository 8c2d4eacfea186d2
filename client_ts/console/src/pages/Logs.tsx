// What the game and the server log, as it comes.

import { useEffect, useMemo, useRef, useState } from 'react';
import { useDatabase } from '../live/hooks';
import { timeText, withoutTurns } from '../module/values';
import { isUnanswered } from '../session';
import { Icon } from '../ui/icons';
import { Empty, isTyping, Mistake, useKey } from '../ui/parts';
import { VirtualList, type ListHandle } from '../ui/VirtualList';

interface Entry {
  number: number;
  level: string;
  ts: number;
  target?: string;
  function?: string;
  filename?: string;
  line_number?: number;
  message: string;
  trace?: { module_name: string; func_name: string }[];
}

const LEVELS = ['Trace', 'Debug', 'Info', 'Warn', 'Error'];
const rank = (level: string): number => (level === 'Panic' ? 4 : Math.max(0, LEVELS.indexOf(level)));
const ENTRIES_MAX = 5000;
const FIRST_LINES = 500;
const RETRY_MS = 2000;
const ROW_HEIGHT = 24;
/** More of a message does not fit in a line. */
const LINE_MAX = 500;

function useLog(): { entries: Entry[]; error: string | null } {
  const { api, name } = useDatabase();
  const [entries, setEntries] = useState<Entry[]>([]);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const control = new AbortController();
    let count = 0;
    let known = new Set<string>(); // after a reconnect the last lines come again
    const read = async (): Promise<void> => {
      const response = await api.fetch(`/v1/database/${name}/logs?follow=true&num_lines=${FIRST_LINES}`, { signal: control.signal });
      if (!response.ok) throw new Error(await response.text());
      setError(null);
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (rest + value).split('\n');
        rest = lines.pop()!;
        const fresh = lines.filter((line) => line !== '' && !known.has(line)).map((line): Entry => ({ number: (count += 1), ...JSON.parse(line) }));
        for (const line of lines) known.add(line);
        if (known.size > ENTRIES_MAX * 2) known = new Set([...known].slice(-ENTRIES_MAX));
        if (fresh.length) setEntries((last) => [...last, ...fresh].slice(-ENTRIES_MAX));
      }
    };
    const follow = async (): Promise<void> => {
      while (!control.signal.aborted) {
        await read().catch((problem: Error) => {
          if (!control.signal.aborted && !isUnanswered(problem)) setError(problem.message);
        });
        await new Promise((done) => setTimeout(done, RETRY_MS));
      }
    };
    void follow();
    return () => control.abort();
  }, [api, name]);
  return { entries, error };
}

export function Logs() {
  const { entries, error } = useLog();
  const [level, setLevel] = useState('Debug');
  const [text, setText] = useState('');
  const [follow, setFollow] = useState(true);
  const [opened, setOpened] = useState<Entry | null>(null);
  const list = useRef<ListHandle>(null);
  const wanted = text.toLowerCase();
  const found = useMemo(
    () => entries.filter((entry) => rank(entry.level) >= rank(level) && (wanted === '' || `${entry.message} ${entry.function} ${entry.target}`.toLowerCase().includes(wanted))),
    [entries, level, wanted],
  );
  useEffect(() => {
    if (follow) list.current?.toEnd();
  }, [found, follow]);
  useKey((event) => {
    if (isTyping(event)) return;
    if (event.key === 'f') setFollow(!follow);
    if (event.key === 'Escape') setOpened(null);
  });
  return (
    <div className="page logs">
      <header className="bar">
        <div className="chips" role="group" aria-label="Level">
          {LEVELS.slice(1).map((one) => (
            <button key={one} className="chip" aria-pressed={one === level} onClick={() => setLevel(one)}>
              <span className={`level level-${one}`}>{one}</span>
              {one !== 'Error' && <span className="quiet">+</span>}
            </button>
          ))}
        </div>
        <span className="search">
          <Icon name="search" size={14} />
          <input data-search aria-label="Find in the log" title="Find (/)" placeholder="Text or reducer" value={text} onChange={(event) => setText(event.target.value)} />
        </span>
        <div className="bar-end">
          <span className="muted">
            {found.length} of {entries.length}
          </span>
          <button className="button" aria-pressed={follow} onClick={() => setFollow(!follow)} title="Stay at the end (f)">
            <Icon name="down" size={13} /> {follow ? 'Following' : 'Follow'}
          </button>
        </div>
      </header>
      {error && <Mistake>{error}</Mistake>}
      {found.length === 0 ? (
        <Empty icon="logs" title={entries.length ? 'Nothing like that was logged' : 'Nothing was logged yet'}>
          {entries.length ? 'Choose a lower level, or another text.' : 'What reducers log with ctx.log, and every failure, appears here.'}
        </Empty>
      ) : (
        <VirtualList
          handle={list}
          label="Log"
          role="log"
          className="list-log"
          count={found.length}
          rowHeight={ROW_HEIGHT}
          onScroll={(atEnd) => {
            if (!atEnd && follow && list.current) setFollow(false);
            if (atEnd && !follow) setFollow(true);
          }}
          row={(index) => {
            const entry = found[index]!;
            return (
              <button key={entry.number} role="row" className={`log-line level-${entry.level} ${entry === opened ? 'is-selected' : ''}`} onClick={() => setOpened(entry === opened ? null : entry)}>
                <time>{entry.ts ? timeText(BigInt(entry.ts)).slice(11) : ''}</time>
                <span className={`level level-${entry.level}`}>{entry.level === 'Panic' ? 'Error' : entry.level}</span>
                <span className="log-function">{entry.function}</span>
                <span className="log-message">{withoutTurns(entry.message.slice(0, LINE_MAX))}</span>
              </button>
            );
          }}
        />
      )}
      {opened && (
        <section className="log-entry" aria-label="Entry">
          <header>
            <span className={`level level-${opened.level}`}>{opened.level}</span>
            <span className="muted">
              {timeText(BigInt(opened.ts))} · {opened.function} · {opened.filename}:{opened.line_number}
            </span>
            <button className="icon-button bar-end" aria-label="Close" onClick={() => setOpened(null)}>
              <Icon name="close" />
            </button>
          </header>
          <pre>{withoutTurns(opened.message)}</pre>
          {opened.trace && <pre className="muted">{opened.trace.map((frame) => `${frame.module_name}  ${frame.func_name}`).join('\n')}</pre>}
        </section>
      )}
    </div>
  );
}
