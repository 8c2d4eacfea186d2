// Rows as a table: columns by what they hold, sorted by a click, only what is in sight.

import { useMemo, useRef, useState } from 'react';
import { deref, kindText, type Field, type Schema } from '../module/schema';
import { show, withoutTurns } from '../module/values';
import { Dialog, isTyping, useKey } from './parts';
import { VirtualList, type ListHandle } from './VirtualList';

const ROW_HEIGHT = 27;

interface Props {
  label: string;
  columns: Field[];
  schema: Schema;
  count: number;
  /** The values of a row, by column; null while they are not here. */
  row: (index: number) => unknown[] | null;
  marks?: Record<string, string>;
  sort?: { column: number; down: boolean } | null;
  onSort?: (column: number) => void;
  onRange?: (first: number, last: number) => void;
}

function width(field: Field, schema: Schema, texts: string[]): number {
  const type = deref(field.kind, schema);
  const inner = type.tag === 'option' ? deref(type.of, schema) : type;
  const most = inner.tag === 'identity' || inner.tag === 'connectionId' ? 18 : 46;
  const longest = Math.max(field.name.length + 4, ...texts.map((text) => Math.min(text.length, most)));
  const least = inner.tag === 'timestamp' || inner.tag === 'scheduleAt' ? 24 : 6;
  return Math.round(Math.max(least, longest) * 7.3 + 22);
}

export function Grid({ label, columns, schema, count, row, marks = {}, sort, onSort, onRange }: Props) {
  const [opened, setOpened] = useState<unknown[] | null>(null);
  const [selected, setSelected] = useState(-1);
  const list = useRef<ListHandle>(null);
  useKey((event) => {
    if (isTyping(event) || count === 0) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = Math.max(0, Math.min(count - 1, selected + step));
      setSelected(next);
      list.current?.show(next);
      list.current?.focus(); // Enter is for the row now, not for the button that was pressed before
    } else if (event.key === 'Enter' && selected >= 0 && !/^(BUTTON|A)$/.test((event.target as HTMLElement).tagName)) {
      event.preventDefault(); // else the dialog's first button is pressed by it
      setOpened(row(selected));
    }
  });
  const sampled = useRef<{ key: string; widths: number[] }>({ key: '', widths: [] });
  const key = columns.map(({ name }) => name).join() + (count > 0 && row(0) !== null);
  if (sampled.current.key !== key) {
    const sample = Array.from({ length: Math.min(count, 40) }, (_one, index) => row(index)).filter((one) => one !== null);
    const widths = columns.map((field, at) => width(field, schema, sample.map((one) => show(field.kind, one[at], schema))));
    sampled.current = { key, widths };
  }
  const template = sampled.current.widths.map((pixels) => `${pixels}px`).join(' ');
  const numeric = useMemo(
    () =>
      columns.map(({ kind }) => {
        const type = deref(kind, schema);
        const inner = type.tag === 'option' ? deref(type.of, schema) : type;
        return inner.tag === 'int' || inner.tag === 'float';
      }),
    [columns, schema],
  );
  const style = { gridTemplateColumns: `${template} 1fr`, minWidth: sampled.current.widths.reduce((a, b) => a + b, 0) };

  return (
    <>
      <VirtualList
        label={label}
        className="list-grid"
        count={count}
        rowHeight={ROW_HEIGHT}
        onRange={onRange}
        handle={list}
        head={
          <div className="grid-head" style={style}>
            {columns.map((field, at) => (
              <button
                key={at}
                className={numeric[at] ? 'right' : ''}
                disabled={!onSort}
                onClick={() => onSort?.(at)}
                title={kindText(field.kind, schema)}
                aria-sort={sort?.column === at ? (sort.down ? 'descending' : 'ascending') : undefined}
              >
                {field.name}
                {marks[field.name] && <sup>{marks[field.name]}</sup>}
                {sort?.column === at && <i className={`sort-arrow ${sort.down ? 'is-down' : ''}`} />}
              </button>
            ))}
          </div>
        }
        row={(index) => {
          const values = row(index);
          return (
            <div key={index} className={`grid-row ${index === selected ? 'is-selected' : ''}`} role="row" aria-rowindex={index + 1} style={style} onClick={() => values && !getSelection()?.toString() && setOpened(values)}>
              {values === null
                ? null
                : columns.map((field, at) => {
                    const text = values[at] === undefined || values[at] === null ? null : show(field.kind, values[at], schema);
                    return (
                      <span key={at} role="cell" className={`${numeric[at] ? 'right' : ''} ${text === null ? 'is-none' : ''}`}>
                        {text === null ? 'None' : withoutTurns(text.length > 300 ? `${text.slice(0, 300)}…` : text)}
                      </span>
                    );
                  })}
            </div>
          );
        }}
      />
      {opened && (
        <Dialog title={label} onClose={() => setOpened(null)} wide>
          <dl className="dialog-body record">
            {columns.map((field, at) => (
              <div key={at}>
                <dt>
                  {field.name}
                  <span className="field-type">{kindText(field.kind, schema)}</span>
                </dt>
                <dd className={opened[at] === undefined || opened[at] === null ? 'is-none' : ''}>
                  {opened[at] === undefined || opened[at] === null ? 'None' : withoutTurns(show(field.kind, opened[at], schema))}
                </dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}
