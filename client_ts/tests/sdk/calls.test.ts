// Reducers and procedures as the SDK calls them: results, refusals, and their order.
import { InternalError, SenderError } from 'spacetimedb';
import { describe, expect, test } from 'vitest';
import { connect, fresh, freshNumber, rejection, settled, subscribed, tables, Watch } from './support';

const notes = (n: number) => tables.note.where((x) => x.n.eq(n));

describe('a reducer that refuses', () => {
  test('gives its text as a SenderError, and nothing of it is seen', async () => {
    const { conn } = await subscribed(notes(0));
    const watch = new Watch(conn.db.note);

    const error = await rejection(conn.reducers.fail({ text: 'not enough gold: 5 < 10' }));

    expect(error).toBeInstanceOf(SenderError);
    expect((error as Error).message).toBe('not enough gold: 5 < 10');
    expect(watch.changes).toEqual([]);
  });

  test('may refuse with an empty text, and with a long one', async () => {
    const { conn } = await connect();

    expect(((await rejection(conn.reducers.fail({ text: '' }))) as Error).message).toBe('');
    const long = 'é'.repeat(100_000);
    expect(((await rejection(conn.reducers.fail({ text: long }))) as Error).message).toBe(long);
  });
});

test('a reducer that panics gives an InternalError without the inside of the server', async () => {
  const { conn } = await subscribed(notes(0));
  const watch = new Watch(conn.db.note);

  const error = await rejection(conn.reducers.panic({}));

  expect(error).toBeInstanceOf(InternalError);
  expect((error as Error).message).not.toContain('the inside of the server');
  expect(watch.changes).toEqual([]);
  await conn.reducers.nothing({});
});

test('a broken constraint rolls everything back', async () => {
  const name = fresh('twin');
  const { conn } = await subscribed(tables.player.where((p) => p.name.eq(name)));

  await rejection(conn.reducers.twice({ name }));

  expect(conn.db.player.count()).toBe(0n);
});

describe('a reducer that cannot be called', () => {
  test.each([
    ['one that there is not', 'no_such_reducer'],
    ['a private one', 'hidden'],
    ['the one of a schedule', 'ring'],
    ['the one of a connection', 'joined'],
  ])('%s gives an InternalError', async (_what, reducer) => {
    const { conn } = await connect();

    const error = await rejection(conn.callReducer(reducer, new Uint8Array()));

    expect(error).toBeInstanceOf(InternalError);
    await conn.reducers.nothing({});
  });

  test('with arguments that are none', async () => {
    const { conn } = await connect();

    const error = await rejection(conn.callReducer('add_note', new Uint8Array([255, 255, 255, 255, 1])));

    expect(error).toBeInstanceOf(InternalError);
    expect((error as Error).message).toContain('invalid arguments for reducer add_note');
    await conn.reducers.nothing({});
  });
});

test('2,000 calls at once are answered in order, each with its own rows', async () => {
  const id = freshNumber();
  const { conn } = await subscribed(tables.counter.where((c) => c.id.eq(id)));
  const answered: number[] = [];
  const seen: bigint[] = [];
  conn.db.counter.onInsert((_ctx, row) => seen.push(row.n));
  conn.db.counter.onUpdate((_ctx, _before, row) => seen.push(row.n));

  await Promise.all(
    Array.from({ length: 2_000 }, (_, number) =>
      conn.reducers.count({ id }).then(() => answered.push(number)),
    ),
  );

  expect(answered).toEqual(Array.from({ length: 2_000 }, (_, number) => number));
  expect(seen).toEqual(Array.from({ length: 2_000 }, (_, number) => BigInt(number + 1)));
  expect(conn.db.counter.id.find(id)?.n).toBe(2_000n);
});

test('calls of several clients at once lose nothing', async () => {
  const id = freshNumber();
  const clients = await Promise.all([1, 2, 3, 4].map(() => subscribed(tables.counter.where((c) => c.id.eq(id)))));

  await Promise.all(clients.flatMap(({ conn }) => Array.from({ length: 100 }, () => conn.reducers.count({ id }))));
  await Promise.all(clients.map(settled));

  expect(clients.map(({ conn }) => conn.db.counter.id.find(id)?.n)).toEqual([400n, 400n, 400n, 400n]);
});

test('a call of 1 MB is carried', async () => {
  const n = freshNumber();
  const text = 'x'.repeat(1_000_000);
  const { conn } = await subscribed(notes(n));

  await conn.reducers.addNote({ text, n });

  expect([...conn.db.note.iter()]).toEqual([{ text, n }]);
});

describe('a procedure', () => {
  test('gives its value, async or not', async () => {
    const { conn } = await connect();

    expect(await conn.procedures.add({ a: 4_000_000_000, b: 4_000_000_000 })).toBe(8_000_000_000n);
    expect(await conn.procedures.multiply({ a: 4_000_000_000, b: 2 })).toBe(8_000_000_000n);
  });

  test('may give nothing, or a value that may be absent', async () => {
    const { conn } = await connect();

    expect(await conn.procedures.maybe({ wanted: true })).toEqual({ x: 1, y: 2 });
    expect(await conn.procedures.maybe({ wanted: false })).toBeUndefined();
  });

  test('that makes a transaction shows its rows before it answers', async () => {
    const n = freshNumber();
    const { conn } = await subscribed(notes(n));
    const watch = new Watch(conn.db.note);

    await conn.procedures.noteIt({ text: 'done', n });

    expect(watch.changes.map((c) => [c.kind, c.row.text, c.event])).toEqual([['insert', 'done', 'Transaction']]);
  });

  test('that waits holds up neither reducers nor other procedures', async () => {
    const { conn } = await connect();
    const gate = fresh('gate');
    let open = false;
    const waiting = conn.procedures.waitFor({ gate }).then((text) => {
      open = true;
      return text;
    });

    await conn.reducers.nothing({});
    expect(await conn.procedures.add({ a: 1, b: 2 })).toBe(3n);
    expect(open).toBe(false);
    await conn.procedures.openGate({ gate });

    expect(await waiting).toBe(`${gate} is open`);
  });

  test('that refuses gives its text, one that crashes does not tell why', async () => {
    const { conn } = await connect();

    expect(await rejection(conn.procedures.refuse({ text: 'closed today' }))).toContain('closed today');
    expect(await rejection(conn.procedures.crash({}))).not.toContain('the inside of the server');
    await conn.reducers.nothing({});
  });

  test('that there is not, or with bad arguments, is refused', async () => {
    const { conn } = await connect();

    expect(await rejection(conn.callProcedure('no_such_procedure', new Uint8Array()))).toContain('no_such_procedure');
    expect(await rejection(conn.callProcedure('add', new Uint8Array([1])))).toContain('add');
    await conn.reducers.nothing({});
  });
});
