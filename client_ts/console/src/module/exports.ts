// What SQL answered, as files for other programs.

import { deref, type Field, type Schema } from './schema';
import { plain, show } from './values';

export interface Rows {
  columns: Field[];
  rows: unknown[][];
}

const NUMBERS = new Set(['int', 'float', 'bool', 'duration', 'timestamp', 'scheduleAt']);
/** How spreadsheets begin a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Lines end with CR LF, as RFC 4180 says. A text that a spreadsheet would run as a formula gets an apostrophe before it:
 * players choose such texts.
 */
export function csvOf({ columns, rows }: Rows, schema: Schema): string {
  const quoted = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const harmless = (text: string): string => quoted(FORMULA.test(text) ? `'${text}` : text);
  const cell = (value: unknown, { kind }: Field): string => {
    if (value === undefined || value === null) return '';
    const text = show(kind, value, schema);
    const type = deref(kind, schema);
    return NUMBERS.has(type.tag === 'option' ? deref(type.of, schema).tag : type.tag) ? quoted(text) : harmless(text);
  };
  return [columns.map(({ name }) => harmless(name)).join(','), ...rows.map((row) => row.map((value, at) => cell(value, columns[at]!)).join(','))].join('\r\n');
}

/** Columns of one name are told apart by numbers: an object has each name once. */
export function jsonOf({ columns, rows }: Rows, schema: Schema): string {
  const names: string[] = [];
  for (const { name } of columns) {
    let unique = name;
    for (let number = 2; names.includes(unique); number += 1) unique = `${name} ${number}`;
    names.push(unique);
  }
  const value = (own: unknown, at: number): unknown => (own === null ? null : plain(columns[at]!.kind, own, schema));
  return JSON.stringify(rows.map((row) => Object.fromEntries(row.map((own, at) => [names[at], value(own, at)]))), null, 1);
}
