// What the console computes by itself: types of a schema, values that people type, numbers of the server.

import { Timestamp } from 'spacetimedb';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Metrics, quantile, readMetrics } from '../src/live/metrics';
import { deref, kindOf, kindText, readSchema, type Field, type Kind, type Schema } from '../src/module/schema';
import { fromSats, Invalid, isoTime, parse, parseExact, parseSeconds, parseTime, show, withoutTurns } from '../src/module/values';
import { csvOf, jsonOf } from '../src/module/exports';
import { readRoute } from '../src/route';
import { readWait } from '../src/pages/workflow/wait';
import { conditions, filterOf, isFiltered, matches, NO_FILTER, queryOf, type Filter } from '../src/pages/workflows/filter';
import type { Api } from '../src/session';
import { draftOf, formOfShape, jsonText, pathInError, valueOf } from '../src/ui/form';

const product = (fields: Record<string, object>): object => ({
  Product: { elements: Object.entries(fields).map(([name, type]) => ({ name: { some: name }, algebraic_type: type })) },
});
const sum = (variants: Record<string, object>): object => ({
  Sum: { variants: Object.entries(variants).map(([name, type]) => ({ name: { some: name }, algebraic_type: type })) },
});
const UNIT = product({});
const NONE: Schema = { types: [], names: new Map(), tables: [], functions: [] };

describe('types of a schema', () => {
  it.each([
    [{ U64: [] }, 'u64'],
    [{ Array: { U8: [] } }, 'bytes'],
    [{ Array: { String: [] } }, 'list[str]'],
    [sum({ some: { I32: [] }, none: UNIT }), 'i32 | None'],
    [product({ __identity__: { U256: [] } }), 'Identity'],
    [product({ __timestamp_micros_since_unix_epoch__: { I64: [] } }), 'datetime'],
    [sum({ Interval: product({ __time_duration_micros__: { I64: [] } }), Time: product({ __timestamp_micros_since_unix_epoch__: { I64: [] } }) }), 'ScheduleAt'],
    [sum({ RED: UNIT, WHITE: UNIT }), 'RED | WHITE'],
  ])('%j is %s', (type, text) => expect(kindText(kindOf(type), NONE)).toBe(text));

  it('follows names, also of a type inside itself', () => {
    const schema = readSchema({
      sections: [
        { Typespace: { types: [product({ next: sum({ some: { Ref: 0 }, none: UNIT }) })] } },
        { Types: [{ ty: 0, source_name: { scope: [], source_name: 'Branch' } }] },
      ],
    });
    expect(kindText({ tag: 'ref', ref: 0 }, schema)).toBe('Branch');
    expect(deref({ tag: 'ref', ref: 0 }, schema).tag).toBe('product');
    expect(show({ tag: 'ref', ref: 0 }, { next: { next: undefined } }, schema)).toBe('{next: {next: }}');
  });
});

describe('values', () => {
  it('keeps the digits of large numbers', () => {
    expect(parseExact('[18446744073709551615, 7]')).toEqual([18446744073709551615n, 7]);
    expect(parseExact('{"a": "99999999999999999999 \\" 1", "b": 0.12345678901234567, "c": -99999999999999999999, "d": 1795986465970168}')).toEqual({
      a: '99999999999999999999 " 1',
      b: 0.12345678901234567,
      c: -99999999999999999999n,
      d: 1795986465970168,
    });
    expect(jsonText({ id: 18446744073709551615n, left: undefined, name: 'a"b' })).toBe('{"id":18446744073709551615,"name":"a\\"b"}');
  });

  it('reads what the server writes', () => {
    const kind = kindOf(product({ at: product({ __timestamp_micros_since_unix_epoch__: { I64: [] } }), who: sum({ some: { U64: [] }, none: UNIT }), mood: sum({ CALM: UNIT, ANGRY: UNIT }) }));
    expect(fromSats(kind, [[1_000_000], [1, []], [1, []]], NONE)).toEqual({ at: new Timestamp(1_000_000n), who: undefined, mood: { tag: 'ANGRY', value: {} } });
  });

  it.each([
    ['u8', '255', 255],
    ['i64', '-9223372036854775808', -(2n ** 63n)],
  ] as const)('takes %s %s', (name, text, value) => expect(parse({ tag: 'int', name }, text, NONE)).toBe(value));

  it.each([
    ['u8', '256'],
    ['u8', '-1'],
    ['i32', '1.5'],
    ['u64', ''],
  ] as const)('refuses %s %j', (name, text) => expect(() => parse({ tag: 'int', name }, text, NONE)).toThrow(Invalid));

  it.each([
    ['90', 90],
    ['1h 30m', 5400],
    ['250ms', 0.25],
    ['-2 s', -2],
  ])('takes %s for %d seconds', (text, seconds) => expect(parseSeconds(text)).toBe(seconds));

  it.each(['soon', '', '5 parsecs', '1.2.3', '1 30s', `${'1'.repeat(10_000)}x`])('takes %j for no duration', (text) => expect(() => parseSeconds(text)).toThrow(Invalid));

  it('takes integers alone for exact ones, whatever players call the keys of theirs', () => {
    const text = '{"$exact integer": 6, "other": 12345678901234567890, "__proto__": 1}';
    expect(Object.entries(parseExact(text))).toEqual([['$exact integer', 6], ['other', 12345678901234567890n], ['__proto__', 1]]);
  });

  it.each<[Kind, string[]]>([
    [{ tag: 'timestamp' }, ['7', 'hello 1', '2026-02-30T00:00:00Z', '2026-13-01', '2026-11-29T25:00Z', '0000-01-01', '+200000-01-01T00:00:00Z']],
    [{ tag: 'duration' }, ['200000000d', '9'.repeat(400), '']],
    [{ tag: 'scheduleAt' }, ['every 200000000d', '7']],
    [{ tag: 'float', name: 'f32' }, ['1e39', '1e999']],
    [{ tag: 'float', name: 'f64' }, ['1e999', '']],
    [{ tag: 'sum', variants: [{ name: 'Rest', kind: { tag: 'product', fields: [{ name: 'why', kind: { tag: 'string' } }] } }] }, ['{"Rest": {"why": 5}}']],
  ])('refuses what %j cannot hold', (kind, texts) => {
    for (const text of texts) expect(() => parse(kind, text, NONE), text).toThrow(Invalid);
  });

  it('keeps the microseconds of a time', () => {
    const time = parse({ tag: 'timestamp' }, '2026-11-29T12:00:00.123456Z', NONE) as Timestamp;
    expect(time.microsSinceUnixEpoch).toBe(BigInt(Date.UTC(2026, 10, 29, 12)) * 1000n + 123_456n);
    expect(isoTime(time.microsSinceUnixEpoch)).toBe('2026-11-29T12:00:00.123456Z');
    expect(isoTime(-1n)).toBe('1969-12-31T23:59:59.999999Z');
    expect(parseTime('2024-02-29 12:00+01:00')).toBe(BigInt(Date.UTC(2024, 1, 29, 11)) * 1000n);
  });
});

describe('exports', () => {
  const columns: Field[] = [
    { name: 'name', kind: { tag: 'string' } },
    { name: 'gold', kind: { tag: 'option', of: { tag: 'int', name: 'i64' } } },
    { name: 'name', kind: { tag: 'string' } },
  ];

  it('writes CSV that other programs read as it was, and that spreadsheets do not run', () => {
    const rows = [
      ['a,b', -5n, 'say "hi"\nnow'],
      ['=HYPERLINK("x")', undefined, '@SUM(1)'],
    ];
    expect(csvOf({ columns, rows }, NONE)).toBe(`name,gold,name\r\n"a,b",-5,"say ""hi""\nnow"\r\n"'=HYPERLINK(""x"")",,'@SUM(1)`);
  });

  it('keeps in JSON all columns of one name', () => {
    expect(JSON.parse(jsonOf({ columns, rows: [['a', 7n, 'b']] }, NONE))).toEqual([{ name: 'a', gold: 7, 'name 2': 'b' }]);
  });

  it('writes out what turns the direction of text', () => expect(withoutTurns('a\u202eb')).toBe('a\\u202eb'));
});

describe('addresses', () => {
  it('reads those that are not decodable as they are', () => {
    expect(readRoute('#/arena/tables/%E0%A4%A').item).toBe('%E0%A4%A');
    expect(readRoute('#/arena/tables/a%2Fb').item).toBe('a/b');
  });
});

describe('forms', () => {
  const leaf = (kind: 'number' | 'duration' | 'time', typed: string): unknown => {
    const errors: Record<string, string> = {};
    const value = valueOf(formOfShape({ kind, type: kind }), { x: typed }, 'x', errors);
    return errors.x === undefined ? value : 'refused';
  };

  it.each<['number' | 'duration' | 'time', string, unknown]>([
    ['number', '1.5', 1.5],
    ['number', 'Infinity', 'refused'],
    ['duration', '1h 30m', 'PT5400S'],
    ['duration', '-0.000001', '-PT0.000001S'],
    ['duration', '9'.repeat(400), 'refused'],
    ['time', '2026-11-29T12:00:00.123456Z', '2026-11-29T12:00:00.123456Z'],
    ['time', 'hello 1', 'refused'],
  ])('takes for a %s %s: %s', (kind, typed, value) => expect(leaf(kind, typed)).toBe(value));

  const recipe = formOfShape({
    kind: 'struct',
    type: 'Recipe',
    fields: [
      { name: 'loaves', shape: { kind: 'integer', type: 'int' }, default: 4 },
      { name: 'note', shape: { kind: 'option', of: { kind: 'text', type: 'str' }, type: 'str | None' }, default: null },
      { name: 'rise', shape: { kind: 'duration', type: 'timedelta' } },
      { name: 'seeds', shape: { kind: 'list', of: { kind: 'text', type: 'str' }, type: 'list[str]' }, default: ['poppy'] },
    ],
  });

  it('begins with the defaults', () => {
    const errors: Record<string, string> = {};
    const draft = { ...draftOf(recipe, undefined, ''), rise: '2m' };
    expect(valueOf(recipe, draft, '', errors)).toEqual({ loaves: 4n, note: null, rise: 'PT120S', seeds: ['poppy'] });
    expect(errors).toEqual({});
  });

  it('says at which field something is missing or wrong', () => {
    const errors: Record<string, string> = {};
    valueOf(recipe, { ...draftOf(recipe, undefined, ''), loaves: 'many' }, '', errors);
    expect(Object.keys(errors)).toEqual(['loaves', 'rise']);
    expect(errors.rise).toContain('needed');
  });

  it.each([
    ['the init of bakery does not fit: Expected `int`, got `str` - at `$.loaves`', 'loaves'],
    ['... - at `$.seeds[0]`', 'seeds[0]'],
    ['the mill is shut', null],
  ])('finds the field in %j', (text, path) => expect(pathInError(text)).toBe(path));
});

describe('what a workflow waits for', () => {
  it('is read from the engine', () => {
    const wait = readWait(['x', [['t', 'baked', 5], ['s', 'Order'], ['s', 'Shut', 9]]]);
    expect(wait).toEqual({
      how: 'any',
      leaves: [
        { kind: 'timer', name: 'baked', due: 5n },
        { kind: 'signal', name: 'Order', due: null },
        { kind: 'signal', name: 'Shut', due: 9n },
      ],
    });
    expect(readWait(['g', [['w', 3, 'stall', true], ['c', 4, 'forecast', 77, '1']]]).leaves).toEqual([
      { kind: 'child', id: 3n, name: 'stall', done: false },
      { kind: 'call', id: 4n, name: 'forecast', done: true },
    ]);
    expect(readWait(null)).toEqual({ how: 'one', leaves: [] });
  });
});

describe('numbers of the server', () => {
  it('are read from the text of Prometheus', () => {
    expect(readMetrics('# HELP x y\nrows{database="a",table="b\\"c"} 12.0\nup 1\n')).toEqual([
      { name: 'rows', labels: { database: 'a', table: 'b"c' }, value: 12 },
      { name: 'up', labels: {}, value: 1 },
    ]);
  });

  it('give quantiles of what came since', () => {
    const before = new Map([[0.1, 10], [1, 10], [Infinity, 10]]);
    const after = new Map([[0.1, 10], [1, 20], [Infinity, 20]]);
    expect(quantile(after, before, 0.5)).toBeCloseTo(0.55);
    expect(quantile(after, after, 0.5)).toBeNull();
  });
});

describe('samples of the server', () => {
  afterEach(() => vi.useRealTimers());

  it('are of the time between two looks, and not since the start of the server', async () => {
    vi.stubGlobal('document', { hidden: false });
    vi.useFakeTimers();
    let count = 1000;
    const api = { fetch: () => Promise.resolve(new Response(`gamedb_transactions_total{database="village"} ${(count += 10)}`)) };
    const metrics = new Metrics(api as unknown as Api, 'village');
    const rates: number[][] = [];
    metrics.listen(() => rates.push(metrics.samples.map(({ transactionsPerSecond }) => transactionsPerSecond)));
    await vi.advanceTimersByTimeAsync(4000);
    metrics.close();
    vi.unstubAllGlobals();
    expect(rates).toEqual([[0], [5], [5, 5]]);
  });
});

describe('the filter of the list of workflows', () => {
  const filter = (query: string): Filter => filterOf(new URLSearchParams(query));
  const NOW = Date.UTC(2026, 0, 2, 12);
  const HOUR = 3_600_000;
  const at = (ms: number): bigint => BigInt(ms) * 1000n;
  const row = (createdAt: number, more = {}): object => ({ id: 7n, status: { tag: 'Suspended' }, workflow_type: 'patrol', current_step: 'sleep', test_mode: false, created_at: new Timestamp(at(createdAt)), ...more });

  it.each([
    'status=Failed&type=patrol&entity=7&q=sleep&age=older%3A1h+30m&timer=within%3A90s',
    'age=younger%3A2d&timer=overdue',
    'timer=none',
    'timer=hand',
    '',
  ])('is in the address as %s', (query) => {
    const found = Object.entries(queryOf(filter(query))).filter(([, text]) => text !== '');
    expect(new URLSearchParams(found).toString()).toBe(query);
    expect(isFiltered(filter(query))).toBe(query !== '');
  });

  it.each(['age=1h', 'age=older', 'age=older:soon', 'age=older:-1h', 'timer=within', 'timer=within:', 'timer=late'])('has nothing of %s', (query) => {
    expect(filter(query)).toEqual(NO_FILTER);
  });

  it('asks the storage engine with the time of asking', () => {
    expect(conditions(filter("type=it's&age=older:1h&timer=within:1d"), NOW)).toEqual([
      "workflow_type = 'it''s'",
      "created_at < '2026-01-02T11:00:00.000000Z'",
      "NOT test_mode AND id IN (SELECT workflow_id FROM workflow_timer WHERE due_at < '2026-01-03T12:00:00.000000Z')",
    ]);
    expect(conditions(filter('age=younger:99999999d&timer=within:99999999d'), NOW).join()).toMatch(/>= '1970-01-01T.*< '9999-12-31T/);
  });

  it.each([
    ['age=older:1h', NOW - HOUR - 1, undefined, true],
    ['age=older:1h', NOW - HOUR, undefined, false],
    ['age=younger:1h', NOW - HOUR, undefined, true],
    ['age=younger:1h', NOW - HOUR - 1, undefined, false],
    ['timer=within:1h', NOW, NOW + HOUR - 1, true],
    ['timer=within:1h', NOW, NOW + HOUR, false],
    ['timer=within:1h', NOW, NOW - HOUR, true],
    ['timer=within:1h', NOW, undefined, false],
    ['timer=overdue', NOW, NOW - 2001, true],
    ['timer=overdue', NOW, NOW - 2000, false],
    ['timer=none', NOW, undefined, true],
    ['timer=none', NOW, NOW + 1, false],
    ['timer=hand', NOW, NOW - HOUR, false],
    ['age=older:1h&timer=none', NOW, undefined, false],
  ])('%s: started at %d, timer at %d: %s', (query, createdAt, due, expected) => {
    expect(matches(row(createdAt), filter(query), due === undefined ? undefined : at(due), NOW)).toBe(expected);
  });

  it('knows that timers of a manual workflow are fired by hand', () => {
    const manual = row(NOW, { test_mode: true });
    const ways = ['hand', 'overdue', 'within:1h', 'none'].map((timer) => matches(manual, filter(`timer=${timer}`), at(NOW - HOUR), NOW));
    expect(ways).toEqual([true, false, false, false]);
  });
});
