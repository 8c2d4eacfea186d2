// Values of columns and parameters: as the SDK has them, from the server's JSON, as text, and from what people type.

import { ConnectionId, Identity, ScheduleAt, TimeDuration, Timestamp, Uuid } from 'spacetimedb';
import { deref, type Field, type IntName, type Kind, type Schema } from './schema';

type Value = any; // of a type that is known at run time only
export type Row = Record<string, Value>;

const LONG_INTEGER = /("(?:[^"\\]|\\.)*")|(?<![\d.eE+-])(-?\d{16,})(?![\d.eE])/g;
/** What players write is in this JSON too: they must not know what marks an integer. */
const EXACT = `$exact ${Math.random()}`;

/** JSON whose integers beyond 2^53 stay exact, as bigints. */
export function parseExact(text: string): Value {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(LONG_INTEGER, (all, inText?: string) => (inText !== undefined || Number.isSafeInteger(Number(all)) ? all : `{"${EXACT}":"${all}"}`));
  return JSON.parse(marked, (_key, value) => (typeof value === 'object' && value !== null && EXACT in value ? BigInt(value[EXACT]) : value));
}

/** From the JSON of SQL results: products are arrays, variants `[index, payload]`. */
export function fromSats(kind: Kind, json: Value, schema: Schema): Value {
  const type = deref(kind, schema);
  switch (type.tag) {
    case 'int':
      return isWide(type.name) ? BigInt(json) : Number(json);
    case 'bytes':
      return typeof json === 'string' ? fromHex(json) : Uint8Array.from(json);
    case 'array':
      return json.map((item: Value) => fromSats(type.of, item, schema));
    case 'option':
      return json[0] === 0 ? fromSats(type.of, json[1], schema) : undefined;
    case 'product':
      return Object.fromEntries(type.fields.map(({ name, kind: inner }, at) => [name, fromSats(inner, json[at], schema)]));
    case 'sum': {
      const variant = type.variants[json[0]]!;
      return { tag: variant.name, value: fromSats(variant.kind, json[1], schema) };
    }
    case 'scheduleAt':
      return json[0] === 0 ? ScheduleAt.interval(BigInt(json[1][0])) : ScheduleAt.time(BigInt(json[1][0]));
    case 'timestamp':
      return new Timestamp(BigInt(json[0]));
    case 'duration':
      return new TimeDuration(BigInt(json[0]));
    case 'identity':
      return new Identity(wide(json[0]));
    case 'connectionId':
      return new ConnectionId(wide(json[0]));
    case 'uuid':
      return new Uuid(wide(json[0]));
    case 'unit':
      return {};
    default:
      return json;
  }
}

function wide(json: Value): bigint {
  return BigInt(typeof json === 'string' && !json.startsWith('0x') ? `0x${json}` : json);
}

export function isWide(name: IntName): boolean {
  return Number(name.slice(1)) >= 64;
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Bytes that are UTF-8 text, such as the JSON of a workflow's state; null for others. */
export function bytesText(bytes: Uint8Array): string | null {
  try {
    const text = decoder.decode(bytes);
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

export function timeText(micros: bigint): string {
  const date = new Date(Number(micros / 1000n));
  if (Number.isNaN(date.getTime())) return `${micros} µs`;
  const two = (number: number, digits = 2): string => `${number}`.padStart(digits, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

/** Characters that turn the direction of text are written out: with them names look like others, or turn what is beside them. */
export function withoutTurns(text: string): string {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (turn) => `\\u${turn.charCodeAt(0).toString(16)}`);
}

/** A value in one line. */
export function show(kind: Kind, value: Value, schema: Schema): string {
  const type = deref(kind, schema);
  switch (type.tag) {
    case 'string':
      return value;
    case 'bytes':
      return value.length === 0 ? '' : (bytesText(value) ?? `0x${toHex(value)}`);
    case 'option':
      return value === undefined || value === null ? '' : show(type.of, value, schema);
    case 'array':
      return `[${value.map((item: Value) => show(type.of, item, schema)).join(', ')}]`;
    case 'product':
      return `{${type.fields.map((field) => `${field.name}: ${show(field.kind, value[field.name], schema)}`).join(', ')}}`;
    case 'sum': {
      const variant = type.variants.find(({ name }) => name === value.tag);
      const payload = variant && deref(variant.kind, schema).tag !== 'unit' ? show(variant.kind, value.value, schema) : '';
      return payload ? `${value.tag} ${payload}` : value.tag;
    }
    case 'timestamp':
      return timeText(value.microsSinceUnixEpoch);
    case 'duration':
      return `${Number(value.micros) / 1e6} s`;
    case 'scheduleAt':
      return value.tag === 'Time' ? timeText(value.value.microsSinceUnixEpoch) : `every ${Number(value.value.micros) / 1e6} s`;
    case 'identity':
    case 'connectionId':
      return `0x${value.toHexString()}`;
    case 'unit':
      return '';
    default:
      return String(value);
  }
}

/** A value as plain JSON, for exports; wide integers are text. */
export function plain(kind: Kind, value: Value, schema: Schema): unknown {
  const type = deref(kind, schema);
  switch (type.tag) {
    case 'bool':
    case 'string':
    case 'float':
      return value;
    case 'int':
      return typeof value === 'bigint' && !Number.isSafeInteger(Number(value)) ? String(value) : Number(value);
    case 'option':
      return value === undefined || value === null ? null : plain(type.of, value, schema);
    case 'array':
      return value.map((item: Value) => plain(type.of, item, schema));
    case 'product':
      return Object.fromEntries(type.fields.map((field) => [field.name, plain(field.kind, value[field.name], schema)]));
    default:
      return show(kind, value, schema);
  }
}

/** For sorting: something that `<` orders. */
export function sortKey(kind: Kind, value: Value, schema: Schema): string | number | bigint {
  const type = deref(kind, schema);
  if (value === undefined || value === null) return '';
  switch (type.tag) {
    case 'option':
      return sortKey(type.of, value, schema);
    case 'int':
    case 'float':
      return value;
    case 'bool':
      return Number(value);
    case 'timestamp':
      return value.microsSinceUnixEpoch;
    case 'duration':
      return value.micros;
    default:
      return show(kind, value, schema);
  }
}

export function compareKeys(a: string | number | bigint, b: string | number | bigint): number {
  if (typeof a === 'string' || typeof b === 'string') return String(a).localeCompare(String(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a field says is wrong with what was typed into it. */
export class Invalid extends Error {}

const DECIMAL = /^[+-]?\d+$/;

/** What somebody typed as a value; `Invalid` says what is wrong. */
export function parse(kind: Kind, text: string, schema: Schema): Value {
  const type = deref(kind, schema);
  const trimmed = text.trim();
  switch (type.tag) {
    case 'bool':
      if (!/^(true|false)$/.test(trimmed)) throw new Invalid('true or false');
      return trimmed === 'true';
    case 'string':
      return text;
    case 'int':
      return parseInteger(type.name, trimmed);
    case 'float': {
      const number = Number(trimmed);
      if (trimmed === '' || Number.isNaN(number)) throw new Invalid('a number, such as 1.5');
      const stored = type.name === 'f32' ? Math.fround(number) : number;
      if (!Number.isFinite(stored) && !/inf/i.test(trimmed)) throw new Invalid(`a number that ${type.name} can hold; Infinity is written as such`);
      return number;
    }
    case 'bytes':
      if (!/^(0x)?([0-9a-f]{2})*$/i.test(trimmed)) throw new Invalid('bytes as hex digits, such as 0aff');
      return fromHex(trimmed.replace(/^0x/i, ''));
    case 'timestamp':
      return new Timestamp(parseTime(trimmed));
    case 'duration':
      return new TimeDuration(parseDuration(trimmed));
    case 'scheduleAt':
      return /^every /.test(trimmed) ? ScheduleAt.interval(parseDuration(trimmed.slice(6))) : ScheduleAt.time(parseTime(trimmed));
    case 'identity':
      if (!/^(0x)?[0-9a-f]{64}$/i.test(trimmed)) throw new Invalid('64 hex digits');
      return Identity.fromString(trimmed.replace(/^0x/i, ''));
    case 'connectionId':
      if (!/^(0x)?[0-9a-f]{32}$/i.test(trimmed)) throw new Invalid('32 hex digits');
      return ConnectionId.fromString(trimmed.replace(/^0x/i, ''));
    case 'uuid':
      if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(trimmed)) throw new Invalid('a UUID');
      return Uuid.parse(trimmed);
    case 'unit':
      return {};
    default:
      return fromJson(kind, parseJson(trimmed), schema, '$');
  }
}

export function parseInteger(name: IntName, text: string): number | bigint {
  if (!DECIMAL.test(text)) throw new Invalid('a whole number');
  const bits = BigInt(name.slice(1));
  const number = BigInt(text);
  const [low, high] = name[0] === 'u' ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
  if (number < low || number > high) throw new Invalid(`${name}: from ${low} to ${high}`);
  return isWide(name) ? number : Number(number);
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?\s*(Z|[+-]\d\d:?\d\d)?)?$/i;

/** Microseconds since 1970. Without a zone it is the time here. What `Date` reads beside ISO 8601 is refused: it reads `7`. */
export function parseTime(text: string): bigint {
  const [found, day, minute, second = '00', fraction = '', zone = ''] = TIME.exec(text) ?? [];
  const micros = fraction.padEnd(6, '0');
  const date = new Date(minute === undefined ? `${day}` : `${day}T${minute}:${second}.${micros.slice(0, 3)}${zone.toUpperCase()}`);
  if (found === undefined || Number.isNaN(date.getTime()) || !isDay(day!)) throw new Invalid('a time, such as 2026-11-29T12:00:00Z');
  return BigInt(date.getTime()) * 1000n + BigInt(micros.slice(3));
}

/** February the 30th is March the 2nd for `Date`. */
function isDay(day: string): boolean {
  return !day.startsWith('0000') && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

/** As JSON has it: with all six digits of the second. */
export function isoTime(micros: bigint): string {
  const rest = ((micros % 1000n) + 1000n) % 1000n;
  return new Date(Number((micros - rest) / 1000n)).toISOString().replace('Z', `${`${rest}`.padStart(3, '0')}Z`);
}

const UNITS = new Map([['ms', 0.001], ['s', 1], ['m', 60], ['min', 60], ['h', 3600], ['d', 86_400]]);
const DURATION_MAX = 2n ** 63n - 1n;

/** `90`, `1.5 s`, `2m`, `1h 30m`: in seconds. Read part by part: one expression for all of it can take for ever. */
export function parseSeconds(text: string): number {
  const invalid = new Invalid('a duration, such as 90s, 5m or 1h 30m');
  const part = /\s*(\d+\.?\d*|\.\d+)\s*(ms|s|min|m|h|d)?/y;
  const whole = text.trimEnd();
  let seconds = 0;
  part.lastIndex = whole.startsWith('-') ? 1 : 0;
  do {
    const [found, number, unit = 's'] = part.exec(whole) ?? [];
    if (found === undefined) throw invalid;
    seconds += Number(number) * UNITS.get(unit)!;
    if (/\d$|\.$/.test(found.trimEnd()) && part.lastIndex < whole.length) throw invalid; // only the last may have no unit
  } while (part.lastIndex < whole.length);
  return whole.startsWith('-') ? -seconds : seconds;
}

/** A duration in microseconds, as columns hold it. */
export function parseDuration(text: string): bigint {
  const micros = Math.round(parseSeconds(text) * 1e6);
  if (!Number.isFinite(micros) || Math.abs(micros) > Number(DURATION_MAX)) throw new Invalid(`a duration of at most ${DURATION_MAX / 86_400_000_000n} days`);
  return micros === Number(DURATION_MAX) ? DURATION_MAX : BigInt(micros);
}

export function parseJson(text: string): Value {
  try {
    return parseExact(text);
  } catch (error) {
    throw new Invalid(`JSON: ${(error as Error).message}`);
  }
}

/** Plain JSON as a value: for types that have no field of their own in a form. */
function fromJson(kind: Kind, json: Value, schema: Schema, path: string): Value {
  const type = deref(kind, schema);
  switch (type.tag) {
    case 'option':
      return json === null ? undefined : fromJson(type.of, json, schema, path);
    case 'array':
      if (!Array.isArray(json)) throw new Invalid(`${path}: a list is needed here, such as [1, 2]`);
      return json.map((item, at) => fromJson(type.of, item, schema, `${path}[${at}]`));
    case 'product':
      return fieldsFromJson(type.fields, json, schema, path);
    case 'sum': {
      const name = typeof json === 'string' ? json : Object.keys(json ?? {})[0];
      const variant = type.variants.find((one) => one.name === name);
      const names = type.variants.map((one) => one.name);
      if (!variant) throw new Invalid(`${path}: one of ${names.join(', ')}, as "${names[0]}" or {"${names[0]}": ...}`);
      return { tag: variant.name, value: fromJson(variant.kind, typeof json === 'string' ? {} : json[variant.name], schema, path) };
    }
    case 'unit':
      return {};
    case 'string':
      if (typeof json !== 'string') throw new Invalid(`${path}: a text is needed here, such as "this"`);
      return json;
    default:
      try {
        return parse(type, typeof json === 'string' ? json : JSON.stringify(json, (_key, value) => (typeof value === 'bigint' ? `${value}` : value)).replace(/^"(-?\d+)"$/, '$1'), schema);
      } catch (error) {
        throw new Invalid(`${path}: ${(error as Error).message}`);
      }
  }
}

function fieldsFromJson(fields: Field[], json: Value, schema: Schema, path: string): Row {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Invalid(`${path}: an object is needed here`);
  const unknown = Object.keys(json).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw new Invalid(`${path}: there is no field ${unknown}`);
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      if (!(name in json) && deref(kind, schema).tag !== 'option') throw new Invalid(`${path}.${name} is missing`);
      return [name, fromJson(kind, json[name] ?? null, schema, `${path}.${name}`)];
    }),
  );
}
