// What the SDK is known to stumble over, where it is the server that could make it stumble.
import { describe, expect, inject, test, vi } from 'vitest';
import { connect, fresh, freshNumber, rejection, settled, subscribe, subscribed, tables, unsubscribe, Watch } from './support';
import { watchNextSocket } from './sockets';

const notes = (n: number) => tables.note.where((x) => x.n.eq(n));

test('a big frame and a small one after it are applied in their order', async () => {
  const n = freshNumber();
  const { conn } = await subscribed(notes(n));

  await Promise.all([conn.reducers.addNotes({ n, many: 5_000 }), conn.reducers.removeNotes({ n })]);

  expect(conn.db.note.count()).toBe(0n);
});

test('rows of the caller are counted once: they go when they are deleted', async () => {
  const n = freshNumber();
  const { conn } = await subscribed(notes(n));

  await conn.reducers.addNote({ text: 'x', n });
  await conn.reducers.removeNotes({ n });

  expect(conn.db.note.count()).toBe(0n);
});

test('nothing that the SDK cannot read, and no rows that it does not know: it complains of nothing', async () => {
  const printed = (['log', 'error', 'warn'] as const).map((method) => vi.spyOn(console, method));
  const n = freshNumber();
  const name = fresh('quiet');
  const client = await connect();
  const { conn } = client;
  const handles = [await subscribe(conn, notes(n)), await subscribe(conn, [notes(n), tables.player.where((p) => p.name.eq(name))])];
  client.conn.subscriptionBuilder().subscribeToAllTables();
  await conn.reducers.addPlayer({ name, teamId: 1, hp: 50 });
  await conn.reducers.addNote({ text: 'a', n });
  await conn.reducers.hit({ name, amount: 1 });
  await conn.reducers.moveNotes({ n, to: n + 1 });
  await rejection(conn.reducers.fail({ text: 'no' }));
  await rejection(conn.reducers.panic({}));
  await Promise.all(handles.map(unsubscribe));
  await conn.reducers.removePlayer({ name });
  await settled(client);

  const complaints = printed.flatMap((spy) => spy.mock.calls).filter((call) => /ERROR|WARN/.test(call.join(' ')));
  expect(complaints).toEqual([]);
  vi.restoreAllMocks();
});

test('rows that were dropped come back with the answer to unsubscribe, as they are then', async () => {
  const name = fresh('last');
  const { conn } = await connect();
  await conn.reducers.addPlayer({ name, teamId: 1, hp: 1 });
  const handle = await subscribe(conn, tables.player.where((p) => p.name.eq(name)));
  await conn.reducers.setHp({ name, hp: 2 });
  const watch = new Watch(conn.db.player);

  await unsubscribe(handle);

  expect(watch.changes.map((c) => [c.kind, c.row.hp])).toEqual([['delete', 2]]);
  expect(conn.db.player.count()).toBe(0n);
});

test('an error of a subscription ends that one, not the connection', async () => {
  const client = await connect();
  let ended = false;
  void client.closed.then(() => (ended = true));

  await rejection(subscribe(client.conn, 'SELECT * FROM secret'));
  await settled(client);

  expect(ended).toBe(false);
  expect(client.conn.isActive).toBe(true);
});

test('a set that has failed may be ended, as pages do when they go away', async () => {
  const client = await connect();
  const failed = new Promise<void>((resolve) => {
    const handle = client.conn
      .subscriptionBuilder()
      .onError(() => resolve())
      .subscribe('SELECT * FROM secret');
    handle.unsubscribe();
  });

  await failed;

  await settled(client);
});

test('every form of NOT, exponents and quotes that the builder writes is read', async () => {
  const { conn } = await connect();

  await subscribe(conn, [
    'SELECT * FROM "everything" WHERE ("everything"."n_f64" > 1e+21) AND (NOT ("everything"."n_f64" = 1e-7))',
    'SELECT * FROM "everything" WHERE NOT (("everything"."flag" = TRUE) OR ("everything"."n_u8" = 1))',
    `SELECT * FROM "everything" WHERE "everything"."text" = 'it''s "q" \\ é\n'`,
    'SELECT * FROM "everything" WHERE "everything"."flag"= TRUE',
  ]);
});

test('the connection id is the one that the server gives', async () => {
  const client = await connect();
  await subscribe(client.conn, tables.mySession);

  expect([...client.conn.db.mySession.iter()][0]?.connection.isEqual(client.conn.connectionId)).toBe(true);
});

test('row bytes of a table without a key are the same in each query and transaction', async () => {
  const n = freshNumber();
  const client = await connect();
  const other = await subscribed(notes(n));
  await client.conn.reducers.addNote({ text: 'é'.repeat(40), n });
  const handle = await subscribe(other.conn, tables.note.where((x) => x.text.eq('é'.repeat(40)).and(x.n.eq(n))));

  await unsubscribe(handle);
  expect(other.conn.db.note.count()).toBe(1n);
  await client.conn.reducers.removeNotes({ n });
  await settled(other);

  expect(other.conn.db.note.count()).toBe(0n);
});

describe('what is no message', () => {
  test.each([
    ['bytes that are none', new Uint8Array([250, 1, 2])],
    ['an empty frame', new Uint8Array()],
    ['text', 'hello'],
    ['a message that is cut off', new Uint8Array([3, 0, 0, 0])],
  ])('%s ends that connection, and no other', async (_what, data) => {
    const other = await connect();
    const socket = watchNextSocket();
    const client = await connect();

    socket.send(data);
    await client.closed;

    await settled(other);
  });
});

test('permessage-deflate is never agreed on', async () => {
  const socket = watchNextSocket();
  await connect();

  expect(socket.socket?.extensions).toBe('');
});

test('pages of another origin may ask for a token', async () => {
  const response = await fetch(`${inject('uri')}/v1/identity/websocket-token`, {
    method: 'OPTIONS',
    headers: {
      Origin: 'https://game.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization',
    },
  });

  expect(response.ok).toBe(true);
  expect(response.headers.get('access-control-allow-origin')).toMatch(/^\*$|game\.example/);
  expect(response.headers.get('access-control-allow-headers')?.toLowerCase()).toMatch(/authorization|\*/);
});
