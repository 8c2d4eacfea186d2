// Rows as the SDK's cache and callbacks show them: inserts, updates, deletes, with a key and without one, and events.
import { describe, expect, test } from 'vitest';
import { connect, fresh, freshNumber, settled, subscribe, subscribed, tables, Watch } from './support';

const byName = (name: string) => tables.player.where((p) => p.name.eq(name));

test('the caller sees insert, update and delete before the call is answered', async () => {
  const name = fresh('ann');
  const { conn } = await subscribed(byName(name));
  const watch = new Watch(conn.db.player);

  await conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
  await conn.reducers.setHp({ name, hp: 7 });
  await conn.reducers.removePlayer({ name });

  expect(watch.kinds()).toEqual(['insert', 'update', 'delete']);
  expect(watch.changes.map((c) => c.row.hp)).toEqual([100, 7, 7]);
  expect(watch.changes.map((c) => c.event)).toEqual(['Reducer', 'Reducer', 'Reducer']);
  expect([...conn.db.player.iter()]).toEqual([]);
});

test('others see the same, as transactions', async () => {
  const name = fresh('bob');
  const caller = await connect();
  const other = await subscribed(byName(name));
  const watch = new Watch(other.conn.db.player);

  await caller.conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
  await caller.conn.reducers.setHp({ name, hp: 7 });
  await caller.conn.reducers.removePlayer({ name });

  await watch.until(3);
  expect(watch.kinds()).toEqual(['insert', 'update', 'delete']);
  expect(watch.changes.map((c) => c.event)).toEqual(['Transaction', 'Transaction', 'Transaction']);
});

test('the callback is told which reducer the caller ran, with its arguments', async () => {
  const name = fresh('cid');
  const { conn } = await subscribed(byName(name));
  const events: unknown[] = [];
  conn.db.player.onInsert((ctx) => {
    if (ctx.event.tag === 'Reducer') {
      events.push(ctx.event.value.reducer);
    }
  });

  await conn.reducers.addPlayer({ name, teamId: 4, hp: 1 });

  expect(events).toEqual([{ name: 'add_player', args: { name, teamId: 4, hp: 1 } }]);
});

test('assigned keys, unique columns and indexes find rows in the cache', async () => {
  const [name, team] = [fresh('dan'), freshNumber()];
  const { conn } = await subscribed(tables.player.where((p) => p.teamId.eq(team)));
  await conn.reducers.addPlayer({ name, teamId: team, hp: 5 });

  const row = conn.db.player.name.find(name);

  expect(row?.id).toBeGreaterThan(0n);
  expect(conn.db.player.id.find(row?.id ?? 0n)).toEqual(row);
  expect([...conn.db.player.team_id.filter(team)]).toEqual([row]);
  expect([...conn.db.player.teamId.filter(team)]).toEqual([row]);
  expect([...conn.db.player.by_team_id_hp.filter([team, 5])]).toEqual([row]);
});

test('a key that is deleted and inserted in one transaction is an update', async () => {
  const name = fresh('eve');
  const { conn } = await subscribed(byName(name));
  await conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
  const watch = new Watch(conn.db.player);

  await conn.reducers.replacePlayer({ name, hp: 50 });

  expect(watch.kinds()).toEqual(['update']);
});

test('a transaction that changes nothing tells nothing', async () => {
  const name = fresh('fay');
  const { conn } = await subscribed(byName(name));
  await conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
  const watch = new Watch(conn.db.player);

  await conn.reducers.replacePlayer({ name, hp: 100 });

  expect(watch.kinds()).toEqual([]);
});

test('a row that leaves the query is deleted, one that enters it is inserted', async () => {
  const [name, here, there] = [fresh('gil'), freshNumber(), freshNumber()];
  const { conn } = await subscribed(tables.player.where((p) => p.teamId.eq(here)));
  const watch = new Watch(conn.db.player);
  await conn.reducers.addPlayer({ name, teamId: here, hp: 1 });

  await conn.reducers.setTeam({ name, teamId: there });
  await conn.reducers.setHp({ name, hp: 2 });
  await conn.reducers.setTeam({ name, teamId: here });

  expect(watch.changes.map((c) => [c.kind, c.row.hp])).toEqual([
    ['insert', 1],
    ['delete', 1],
    ['insert', 2],
  ]);
});

test('keys of every type are seen as the same key again', async () => {
  const client = await connect();
  await client.conn.reducers.setKeyed({ n: 1 });
  const keyed = [
    tables.byBool,
    tables.byI8,
    tables.byU256,
    tables.byText,
    tables.byBytes,
    tables.byMoment,
    tables.bySpan,
    tables.byUuid,
    tables.byIdentity,
    tables.byConnectionId,
    tables.byColor,
  ];
  await subscribe(client.conn, keyed);
  const { db } = client.conn;
  const watches = Object.entries({
    bool: new Watch(db.byBool),
    i8: new Watch(db.byI8),
    u256: new Watch(db.byU256),
    text: new Watch(db.byText),
    bytes: new Watch(db.byBytes),
    moment: new Watch(db.byMoment),
    span: new Watch(db.bySpan),
    uuid: new Watch(db.byUuid),
    identity: new Watch(db.byIdentity),
    connectionId: new Watch(db.byConnectionId),
    color: new Watch(db.byColor),
  });

  await client.conn.reducers.setKeyed({ n: 2 });

  expect(Object.fromEntries(watches.map(([name, watch]) => [name, watch.kinds()]))).toEqual(
    Object.fromEntries(watches.map(([name]) => [name, ['update']])),
  );
});

describe('a table without a primary key', () => {
  test('tells inserts and deletes, never updates', async () => {
    const [n, to] = [freshNumber(), freshNumber()];
    const { conn } = await subscribed([
      tables.note.where((x) => x.n.eq(n)),
      tables.note.where((x) => x.n.eq(to)),
    ]);
    const watch = new Watch(conn.db.note);

    await conn.reducers.addNote({ text: 'one', n });
    await conn.reducers.moveNotes({ n, to });
    await conn.reducers.removeNotes({ n: to });

    const told = watch.changes.map((c) => [c.kind, c.row.n]);
    expect(told.filter(([, where]) => where === n)).toEqual([['insert', n], ['delete', n]]);
    expect(told.filter(([, where]) => where === to)).toEqual([['insert', to], ['delete', to]]);
    expect(conn.db.note.count()).toBe(0n);
  });

  test('is a set: the same row twice is one', async () => {
    const n = freshNumber();
    const { conn } = await subscribed(tables.note.where((x) => x.n.eq(n)));
    const watch = new Watch(conn.db.note);

    await conn.reducers.addNote({ text: 'same', n });
    await conn.reducers.addNote({ text: 'same', n });

    expect(watch.kinds()).toEqual(['insert']);
    expect(conn.db.note.count()).toBe(1n);
  });
});

describe('an event table', () => {
  test('tells each event once and keeps no rows', async () => {
    const name = fresh('hal');
    const client = await connect();
    await client.conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
    const other = await subscribed(tables.damage, byName(name));
    const player = other.conn.db.player.name.find(name);
    const watch = new Watch(other.conn.db.damage);
    await subscribe(client.conn, tables.damage);
    const own = new Watch(client.conn.db.damage);

    await client.conn.reducers.hit({ name, amount: 3 });
    await client.conn.reducers.hit({ name, amount: 4 });
    await settled(other);

    const mine = (w: typeof own) => w.changes.filter((c) => c.row.playerId === player?.id).map((c) => c.row.amount);
    expect(mine(own)).toEqual([3, 4]);
    expect(mine(watch)).toEqual([3, 4]);
    expect(other.conn.db.damage.count()).toBe(0n);
    expect(own.changes.every((c) => c.kind === 'insert')).toBe(true);
  });

  test('has nothing to tell a client that comes later', async () => {
    const name = fresh('ida');
    const client = await connect();
    await client.conn.reducers.addPlayer({ name, teamId: 1, hp: 100 });
    await client.conn.reducers.hit({ name, amount: 5 });

    const watch = new Watch(client.conn.db.damage);
    await subscribe(client.conn, tables.damage);
    await settled(client);

    expect(watch.changes.filter((c) => c.row.amount === 5)).toEqual([]);
  });
});

test('a schedule fires, and its table is seen like any other', async () => {
  const text = fresh('alarm');
  const { conn } = await subscribed(tables.alarm.where((a) => a.text.eq(text)), tables.note.where((x) => x.n.eq(9)));
  const alarms = new Watch(conn.db.alarm);
  const notes = new Watch(conn.db.note);

  await conn.reducers.setAlarm({ milliseconds: 30, text });
  expect(alarms.changes[0]?.row.scheduledAt.tag).toBe('Time');
  await alarms.until(2);
  await notes.until(1);

  expect(alarms.kinds()).toEqual(['insert', 'delete']);
  expect(notes.changes.map((c) => c.row.text)).toContain(text);
});
