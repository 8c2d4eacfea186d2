// Connections: who one is, tokens, both protocols, confirmed reads, and what a refused connection looks like.
import { describe, expect, inject, test } from 'vitest';
import { builder, connect, fresh, freshNumber, rejection, settled, subscribe, subscribed, tables, Watch } from './support';
import { watchNextSocket } from './sockets';

describe('who a client is', () => {
  test('somebody new without a token', async () => {
    const [one, other] = await Promise.all([connect(), connect()]);

    expect(one.identity.toHexString()).toMatch(/^c200[0-9a-f]{60}$/);
    expect(one.identity.isEqual(other.identity)).toBe(false);
    expect(one.conn.connectionId.isEqual(other.conn.connectionId)).toBe(false);
  });

  test('the same again with the token, on another connection', async () => {
    const first = await connect();
    first.conn.disconnect();
    await first.closed;

    const again = await connect((b) => b.withToken(first.token));

    expect(again.identity.isEqual(first.identity)).toBe(true);
    expect(again.conn.connectionId.isEqual(first.conn.connectionId)).toBe(false);
    expect(again.token).toBe(first.token);
  });

  test('two connections at once with one token are one player with two connections', async () => {
    const first = await connect();
    const second = await connect((b) => b.withToken(first.token));
    await subscribe(second.conn, tables.session.where((s) => s.identity.eq(first.identity)));

    expect(second.conn.db.session.count()).toBe(2n);
    const watch = new Watch(second.conn.db.session);
    first.conn.disconnect();
    await watch.until(1);

    expect(watch.kinds()).toEqual(['delete']);
  });

  test('nobody with a token that is none', async () => {
    const error = await rejection(connect((b) => b.withToken('forged')));

    expect((error as Error).message).toContain('Failed to verify token');
  });

  test('somebody new with an empty token', async () => {
    expect((await connect((b) => b.withToken(''))).token).not.toBe('');
  });
});

test('a database that there is not refuses the connection', async () => {
  expect(await rejection(connect((b) => b.withDatabaseName('no-such-game')))).toBeTruthy();
});

test('a database answers to its identity, too', async () => {
  const response = await fetch(`${inject('uri')}/v1/database/${inject('database')}/identity`);
  const identity = await response.text();

  const client = await connect((b) => b.withDatabaseName(identity));

  await settled(client);
});

test('what a client subscribed to is there again after a reconnection', async () => {
  const name = fresh('rob');
  const query = tables.player.where((p) => p.name.eq(name));
  const first = await subscribed(query);
  await first.conn.reducers.addPlayer({ name, teamId: 1, hp: 3 });
  first.conn.disconnect();
  await first.closed;

  const again = await connect((b) => b.withToken(first.token));
  await subscribe(again.conn, query);

  expect(again.conn.db.player.name.find(name)?.hp).toBe(3);
});

describe.each([
  ['v3', undefined],
  ['v2', ['v2.bsatn.spacetimedb']],
])('protocol %s', (version, offered) => {
  test('serves calls, rows and subscriptions', async () => {
    const id = freshNumber();
    const socket = watchNextSocket(offered);
    const { conn } = await connect();
    await subscribe(conn, tables.counter.where((c) => c.id.eq(id)));

    await Promise.all(Array.from({ length: 200 }, () => conn.reducers.count({ id })));

    expect(socket.protocol).toBe(`${version}.bsatn.spacetimedb`);
    expect(conn.db.counter.id.find(id)?.n).toBe(200n);
    expect(await conn.procedures.add({ a: 1, b: 2 })).toBe(3n);
  });
});

test('under load the server packs many messages into few frames', async () => {
  const socket = watchNextSocket();
  const { conn } = await connect();
  const id = freshNumber();
  const before = socket.frames.length;

  await Promise.all(Array.from({ length: 1_000 }, () => conn.reducers.count({ id })));

  expect(socket.frames.length - before).toBeLessThan(300);
});

test('a protocol that the server does not speak is refused', async () => {
  watchNextSocket(['v9.bsatn.spacetimedb']);

  expect(await rejection(connect())).toBeTruthy();
});

describe.each([true, false])('confirmed reads %s', (confirmed) => {
  test('gives the same rows and answers', async () => {
    const name = fresh('con');
    const { conn } = await connect((b) => b.withConfirmedReads(confirmed));
    await subscribe(conn, tables.player.where((p) => p.name.eq(name)));
    const watch = new Watch(conn.db.player);

    await conn.reducers.addPlayer({ name, teamId: 1, hp: 1 });
    await conn.reducers.removePlayer({ name });

    expect(watch.kinds()).toEqual(['insert', 'delete']);
  });
});

// Node cannot read brotli, and the SDK says so itself.
test.each(['gzip', 'none'] as const)('a client that would take %s gets plain frames', async (compression) => {
  const n = freshNumber();
  const socket = watchNextSocket();
  const { conn } = await connect((b) => b.withCompression(compression));
  await subscribe(conn, tables.note.where((x) => x.n.eq(n)));

  await conn.reducers.addNotes({ n, many: 1_000 });

  expect(conn.db.note.count()).toBe(1_000n);
  expect(socket.frames.every((frame) => frame[0] === 0)).toBe(true);
  expect(Math.max(...socket.frames.map((frame) => frame.length))).toBeGreaterThan(10_000);
});

test('light mode changes nothing', async () => {
  const client = await connect((b) => b.withLightMode(true));

  await settled(client);
});

test('calls made before the connection is ready are made when it is', async () => {
  const id = freshNumber();
  const conn = builder().build();
  const call = conn.reducers.count({ id });

  await call;

  conn.disconnect();
});

test('a client that is connected is known, and forgotten when it leaves', async () => {
  const observer = await connect();
  const guest = await connect();
  await subscribe(observer.conn, tables.session.where((s) => s.identity.eq(guest.identity)));
  expect([...observer.conn.db.session.iter()].map((s) => s.connection.toHexString())).toEqual([
    guest.conn.connectionId.toHexString(),
  ]);
  const watch = new Watch(observer.conn.db.session);

  guest.conn.disconnect();
  await watch.until(1);

  expect(watch.kinds()).toEqual(['delete']);
});
