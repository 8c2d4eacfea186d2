// Every column type, in both directions: as a row, as parameters, and as what a procedure takes and gives.
import { ConnectionId, Identity, ScheduleAt, TimeDuration, Timestamp, Uuid, type Infer } from 'spacetimedb';
import { describe, expect, test } from 'vitest';
import EverythingRow from './generated/game/everything_table';
import type { Expr, Tree } from './generated/game/types';
import { freshNumber, subscribed, tables, Watch } from './support';

type Everything = Infer<typeof EverythingRow>;

const NOW = new Timestamp(1_795_953_600_123_456n);
const FIRST = new Timestamp(-62_135_596_800_000_000n); // the first moment of year 1
const LAST = new Timestamp(253_402_300_799_999_999n); // the last of year 9999

function plain(id: bigint): Everything {
  return {
    id,
    flag: true,
    nU8: 1,
    nU16: 2,
    nU32: 3,
    nU64: 4n,
    nU128: 5n,
    nU256: 6n,
    nI8: -1,
    nI16: -2,
    nI32: -3,
    nI64: -4n,
    nI128: -5n,
    nI256: -6n,
    nF32: 1.5,
    nF64: 0.1,
    text: 'héllo',
    data: new Uint8Array([0, 1, 255]),
    small: new Uint8Array([7, 8]),
    moment: NOW,
    span: new TimeDuration(1_000_000n),
    when: ScheduleAt.time(NOW.microsSinceUnixEpoch),
    uid: Uuid.parse('01888d6e-5c00-7000-8000-000000000001'),
    who: Identity.fromString('c2'.repeat(32)),
    link: ConnectionId.fromString('000102030405060708090a0b0c0d0e0f'),
    color: { tag: 'Green' },
    colors: [{ tag: 'Red' }, { tag: 'DarkBlue' }],
    point: { x: 1, y: -2 },
    path: { title: 'way', points: [{ x: 1, y: 2 }, { x: 3, y: 4 }], nextStop: { x: 5, y: 6 } },
    empty: {},
    shape: { tag: 'Circle', value: { center: { x: 0, y: 1 }, radius: 2.5 } },
    shapes: [{ tag: 'Nowhere' }, { tag: 'Polygon', value: { corners: [{ x: 1, y: 1 }] } }],
    tree: { value: 1, children: [{ value: 2, children: [] }, { value: 3, children: [{ value: 4, children: [] }] }] },
    expr: {
      tag: 'Sum',
      value: { left: { tag: 'Number', value: { value: 1 } }, right: { tag: 'Negated', value: { innerExpr: { tag: 'Zero' } } } },
    },
    maybeNumber: 7,
    maybeText: 'there',
    maybePoint: { x: 8, y: 9 },
    maybeColor: { tag: 'Red' },
    maybeList: ['a', undefined, ''],
    matrix: [[1n, 2n], [], [-3n]],
    numbers: [0n, 2n ** 256n - 1n],
    names: ['', 'b'],
  };
}

const HIGHEST: Partial<Everything> = {
  nU8: 255,
  nU16: 65_535,
  nU32: 4_294_967_295,
  nU64: 2n ** 64n - 1n,
  nU128: 2n ** 128n - 1n,
  nU256: 2n ** 256n - 1n,
  nI8: 127,
  nI16: 32_767,
  nI32: 2_147_483_647,
  nI64: 2n ** 63n - 1n,
  nI128: 2n ** 127n - 1n,
  nI256: 2n ** 255n - 1n,
  nF32: 3.4028234663852886e38,
  nF64: Number.MAX_VALUE,
  moment: LAST,
  span: new TimeDuration(2n ** 63n - 1n),
  when: ScheduleAt.interval(2n ** 63n - 1n),
  who: Identity.fromString('f'.repeat(64)),
  link: ConnectionId.fromString('f'.repeat(32)),
  uid: Uuid.MAX,
  text: '𝄞 ünïcode \u0000 "\' \\ \n',
  data: new Uint8Array(70_000).fill(9),
};

const LOWEST: Partial<Everything> = {
  flag: false,
  nU8: 0,
  nU16: 0,
  nU32: 0,
  nU64: 0n,
  nU128: 0n,
  nU256: 0n,
  nI8: -128,
  nI16: -32_768,
  nI32: -2_147_483_648,
  nI64: -(2n ** 63n),
  nI128: -(2n ** 127n),
  nI256: -(2n ** 255n),
  nF32: -3.4028234663852886e38,
  nF64: -Number.MAX_VALUE,
  moment: FIRST,
  span: new TimeDuration(-(2n ** 63n)),
  when: ScheduleAt.interval(1n),
  who: Identity.fromString('0'.repeat(64)),
  link: ConnectionId.fromString('0'.repeat(32)),
  uid: Uuid.NIL,
};

const EMPTY: Partial<Everything> = {
  text: '',
  data: new Uint8Array(),
  small: new Uint8Array(),
  colors: [],
  path: { title: '', points: [], nextStop: undefined },
  shape: { tag: 'Nowhere' },
  shapes: [],
  tree: { value: 0, children: [] },
  expr: { tag: 'Negated', value: { innerExpr: undefined } },
  maybeNumber: undefined,
  maybeText: undefined,
  maybePoint: undefined,
  maybeColor: undefined,
  maybeList: undefined,
  matrix: [],
  numbers: [],
  names: [],
};

/** How the SDK gives a value back: variants without payload get an empty one. */
function received<T>(value: T): T {
  if (Array.isArray(value)) {
    return value.map(received) as T;
  }
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) {
    return value;
  }
  const entries = Object.entries(value).map(([key, inner]) => [key, received(inner)]);
  const object = Object.fromEntries(entries) as Record<string, unknown>;
  return ('tag' in object && !('value' in object) ? { ...object, value: {} } : object) as T;
}

const CASES: [string, Partial<Everything>][] = [
  ['plain values', {}],
  ['the highest of each range', HIGHEST],
  ['the lowest of each range', LOWEST],
  ['what is empty or absent', EMPTY],
  ['floats that are no numbers', { nF32: Number.NaN, nF64: Number.POSITIVE_INFINITY }],
  ['the negative zero', { nF32: -0, nF64: -0 }],
  ['the smallest floats', { nF32: 1.401298464324817e-45, nF64: Number.MIN_VALUE }],
];

describe.each(CASES)('%s', (_name, values) => {
  test('come back as a row', async () => {
    const row = { ...plain(BigInt(freshNumber())), ...values };
    const { conn } = await subscribed(tables.everything.where((e) => e.id.eq(row.id)));

    await conn.reducers.put({ row });

    expect(conn.db.everything.id.find(row.id)).toEqual(received(row));
  });

  test('come back from a procedure', async () => {
    const row = { ...plain(BigInt(freshNumber())), ...values };
    const { conn } = await subscribed();

    expect(await conn.procedures.echo({ row })).toEqual(received(row));
  });
});

test('each type is a parameter', async () => {
  const id = BigInt(freshNumber());
  const { conn } = await subscribed(tables.everything.where((e) => e.id.eq(id)));
  await conn.reducers.put({ row: plain(id) });
  const given = {
    tree: { value: 9, children: [] } satisfies Tree,
    expr: { tag: 'Zero' } satisfies Expr as Expr,
    shape: { tag: 'Polygon' as const, value: { corners: [] } },
    moment: FIRST,
    span: new TimeDuration(-1n),
    when: ScheduleAt.interval(5n),
    uid: Uuid.NIL,
    who: Identity.fromString('0f'.repeat(32)),
    link: ConnectionId.fromString('0e'.repeat(16)),
  };

  await conn.reducers.putSimple({ id, ...given, color: undefined, big: -(2n ** 255n), points: [{ x: 4, y: 2 }] });

  const row = conn.db.everything.id.find(id);
  expect(row).toMatchObject(received({ ...given, nI256: -(2n ** 255n) }));
  expect(row?.maybeColor).toBeUndefined();
  expect(row?.path).toEqual({ title: 'parameters', points: [{ x: 4, y: 2 }], nextStop: undefined });
});

test('a value that holds itself many times is carried', async () => {
  let tree: Tree = { value: 0, children: [] };
  let expr: Expr = { tag: 'Zero' };
  for (let depth = 1; depth < 60; depth += 1) {
    tree = { value: depth, children: [tree] };
    expr = { tag: 'Negated', value: { innerExpr: expr } };
  }
  const row = { ...plain(BigInt(freshNumber())), tree, expr };
  const { conn } = await subscribed(tables.everything.where((e) => e.id.eq(row.id)));

  await conn.reducers.put({ row });

  expect(conn.db.everything.id.find(row.id)).toEqual(received(row));
});

test('one that holds itself too often is refused, and the connection lives on', async () => {
  let tree: Tree = { value: 0, children: [] };
  for (let depth = 0; depth < 500; depth += 1) {
    tree = { value: depth, children: [tree] };
  }
  const { conn } = await subscribed();

  await expect(conn.reducers.put({ row: { ...plain(1n), tree } })).rejects.toThrow(/nest/);
  await conn.reducers.nothing({});
});

test('a row of every type changes as an update', async () => {
  const row = plain(BigInt(freshNumber()));
  const client = await subscribed(tables.everything.where((e) => e.id.eq(row.id)));
  await client.conn.reducers.put({ row });
  const watch = new Watch(client.conn.db.everything);

  await client.conn.reducers.put({ row: { ...row, ...EMPTY } });

  expect(watch.kinds()).toEqual(['update']);
  expect(watch.changes[0]).toMatchObject({ before: { text: 'héllo' }, row: { text: '' } });
});
