// Which workflows the list shows: what stands in the address, as conditions of SQL, and as a test of a row.
//
// An age and "due within" are relative: their bounds move with the clock. So no query that is followed has them. They are
// in the SQL that asks for pages of ids, with the time of asking; and the page tests the rows that it follows each second.

import { Invalid, parseSeconds, type Row } from '../../module/values';
import { LATE_MS, millis } from '../../ui/time';

export const STATUSES = ['Suspended', 'Cancelling', 'Failed', 'Completed', 'Cancelled'] as const;

/** `90m`, and how many milliseconds it is. */
export interface Span {
  text: string;
  ms: number;
}

/** Older than so much, or younger. */
export const AGES = ['older', 'younger'] as const;
export interface Age {
  how: (typeof AGES)[number];
  than: Span;
}

/**
 * Of the timer that comes next: due within so much (or overdue); overdue; to be fired by hand, as the workflow is a
 * manual one; or there is none.
 */
export const TIMERS = ['within', 'overdue', 'hand', 'none'] as const;
export type NextTimer = { how: 'within'; within: Span } | { how: 'overdue' | 'hand' | 'none' };

export interface Filter {
  status: string;
  type: string;
  entity: string;
  search: string;
  age: Age | null;
  timer: NextTimer | null;
}

export const NO_FILTER: Filter = { status: '', type: '', entity: '', search: '', age: null, timer: null };

/** A duration that somebody typed; `Invalid` says what is wrong with it. */
export function spanOf(text: string): Span {
  const ms = parseSeconds(text.trim()) * 1000;
  if (ms < 0) throw new Invalid('a duration from now on, such as 90s, 5m or 1h 30m');
  return { text, ms };
}

/** `older:1h`: a word of `words`, and a duration where one belongs to it. Null for what is not so. */
function relation<T extends string>(text: string | null, words: readonly T[]): { how: T; span: Span | null } | null {
  const [word, ...rest] = (text ?? '').split(':');
  const how = words.find((one) => one === word);
  if (how === undefined) return null;
  try {
    return { how, span: rest.length ? spanOf(rest.join(':')) : null };
  } catch {
    return null;
  }
}

export function filterOf(query: URLSearchParams): Filter {
  const age = relation(query.get('age'), AGES);
  const timer = relation(query.get('timer'), TIMERS);
  return {
    status: query.get('status') ?? '',
    type: query.get('type') ?? '',
    entity: query.get('entity') ?? '',
    search: query.get('q') ?? '',
    age: age?.span ? { how: age.how, than: age.span } : null,
    timer: timer === null ? null : timer.how !== 'within' ? { how: timer.how } : timer.span ? { how: 'within', within: timer.span } : null,
  };
}

/** The same for the address; what is empty is left out there. */
export function queryOf({ status, type, entity, search, age, timer }: Filter): Record<string, string> {
  return {
    status,
    type,
    entity,
    q: search,
    age: age ? `${age.how}:${age.than.text}` : '',
    timer: timer === null ? '' : timer.how === 'within' ? `within:${timer.within.text}` : timer.how,
  };
}

export const isFiltered = (filter: Filter): boolean => Object.values(queryOf(filter)).some((text) => text !== '');

export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** What is followed: equalities, which cost a commit nothing. */
export function equalities({ status, type, entity }: Filter): string[] {
  return [
    ...(status ? [`status = ${sqlText(status)}`] : []),
    ...(type ? [`workflow_type = ${sqlText(type)}`] : []),
    ...(/^\d+$/.test(entity) ? [`entity_id = ${entity}`] : []),
  ];
}

/** All of the filter as it is at `now`, in the SQL of the storage engine. */
export function conditions(filter: Filter, now: number): string[] {
  return [...equalities(filter), ...searchSql(filter.search), ...ageSql(filter.age, now), ...timerSql(filter.timer, now)];
}

function searchSql(search: string): string[] {
  if (search === '') return [];
  const like = sqlText(`%${search.replace(/[%_\\]/g, '\\$&')}%`);
  const texts = ['workflow_type', 'correlation_id', 'current_step'].map((column) => `${column} LIKE ${like} ESCAPE '\\'`);
  const number = search.replace(/^#/, '');
  return [`(${[...(/^\d{1,18}$/.test(number) ? [`id = ${number}`, `entity_id = ${number}`] : []), ...texts].join(' OR ')})`];
}

function ageSql(age: Age | null, now: number): string[] {
  if (age === null) return [];
  return [`created_at ${age.how === 'older' ? '<' : '>='} ${timeSql(now - age.than.ms)}`];
}

function timerSql(timer: NextTimer | null, now: number): string[] {
  if (timer === null) return [];
  const all = 'SELECT workflow_id FROM workflow_timer';
  switch (timer.how) {
    case 'none':
      return [`id NOT IN (${all})`];
    case 'hand':
      return [`test_mode AND id IN (${all})`];
    default:
      return [`NOT test_mode AND id IN (${all} WHERE due_at < ${timeSql(dueBefore(timer, now))})`];
  }
}

const dueBefore = (timer: NextTimer, now: number): number => (timer.how === 'within' ? now + timer.within.ms : now - LATE_MS);

/** Columns hold times of four digits for the year. */
const TIME_MAX = Date.UTC(9999, 11, 31);

/** A time as columns hold it, with six digits of the second: so it can be compared as text, too. */
function timeSql(ms: number): string {
  return sqlText(new Date(Math.min(Math.max(ms, 0), TIME_MAX)).toISOString().replace('Z', '000Z'));
}

/** Whether a followed row is one of these at `now`. `due`: its next timer, in microseconds since 1970. */
export function matches(row: Row, filter: Filter, due: bigint | undefined, now: number): boolean {
  const { status, type, entity, search, age, timer } = filter;
  if (status && row.status.tag !== status) return false;
  if (type && row.workflow_type !== type) return false;
  if (/^\d+$/.test(entity) && String(row.entity_id) !== entity) return false;
  if (age && (millis(row.created_at.microsSinceUnixEpoch) < now - age.than.ms) !== (age.how === 'older')) return false;
  if (timer && !hasTimer(row, timer, due, now)) return false;
  return !search || isFound(row, search);
}

function hasTimer(row: Row, timer: NextTimer, due: bigint | undefined, now: number): boolean {
  if (timer.how === 'none' || due === undefined) return timer.how === 'none' && due === undefined;
  if (timer.how === 'hand' || row.test_mode) return timer.how === 'hand' && row.test_mode;
  return millis(due) < dueBefore(timer, now);
}

function isFound(row: Row, search: string): boolean {
  const number = search.replace(/^#/, '');
  if (/^\d+$/.test(number) && (String(row.id) === number || String(row.entity_id) === number)) return true;
  const wanted = search.toLowerCase();
  return [row.workflow_type, row.correlation_id ?? '', row.current_step].some((text) => text.toLowerCase().includes(wanted));
}
