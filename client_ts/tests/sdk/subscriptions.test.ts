// Subscriptions: what each query shows, how sets of queries overlap and end, and what is refused.
import { and, not, or } from 'spacetimedb';
import { describe, expect, test } from 'vitest';
import {
  connect,
  fresh,
  freshNumber,
  rejection,
  settled,
  subscribe,
  subscribed,
  tables,
  unsubscribe,
  Watch,
  type Client,
  type Query,
} from './support';

/** A team of players that nobody else has: ann (10), bob (20) and cid (30). */
async function team(client: Client): Promise<{ teamId: number; names: [string, string, string] }> {
  const teamId = freshNumber();
  const names: [string, string, string] = [fresh('ann'), fresh('bob'), fresh('cid')];
  await Promise.all(names.map((name, at) => client.conn.reducers.addPlayer({ name, teamId, hp: (at + 1) * 10 })));
  return { teamId, names };
}

const hps = (client: Client) => [...client.conn.db.player.iter()].map((p) => p.hp).sort((a, b) => a - b);

describe('the query builder', () => {
  const p = tables.player;
  const cases: [string, (t: number) => Query, number[]][] = [
    ['equal', (t) => p.where((x) => x.teamId.eq(t)), [10, 20, 30]],
    ['not equal', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.ne(20))), [10, 30]],
    ['less', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.lt(20))), [10]],
    ['less or equal', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.lte(20))), [10, 20]],
    ['greater', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.gt(20))), [30]],
    ['greater or equal', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.gte(20))), [20, 30]],
    ['and of three', (t) => p.where((x) => and(x.teamId.eq(t), x.hp.gt(10), x.hp.lt(30))), [20]],
    ['or', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.eq(10).or(x.hp.eq(30)))), [10, 30]],
    ['not', (t) => p.where((x) => and(or(x.teamId.eq(t), x.teamId.eq(0)), not(x.hp.eq(20)))), [10, 30]],
    ['where after where', (t) => p.where((x) => x.teamId.eq(t)).where((x) => x.hp.gt(10)), [20, 30]],
    ['column to column', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.eq(x.hp))), [10, 20, 30]],
    ['a negative literal', (t) => p.where((x) => x.teamId.eq(t).and(x.hp.gt(-5))), [10, 20, 30]],
    ['text by hand', (t) => `select * from player p where p.team_id = ${t} and hp != 20`, [10, 30]],
    ['two queries in a set', (t) => [p.where((x) => x.teamId.eq(t).and(x.hp.lt(15))), p.where((x) => x.teamId.eq(t).and(x.hp.gt(25)))], [10, 30]],
  ];

  test.each(cases)('%s', async (_what, query, expected) => {
    const client = await connect();
    const { teamId } = await team(client);

    await subscribe(client.conn, query(teamId));

    expect(hps(client)).toEqual(expected);
  });

  test('constants', async () => {
    const { conn } = await connect();
    const nothing = await subscribed('SELECT * FROM "counter" WHERE FALSE = TRUE');
    await conn.reducers.count({ id: 1 });

    await subscribe(conn, 'SELECT * FROM "counter" WHERE TRUE = TRUE');

    expect(conn.db.counter.id.find(1)).toBeTruthy();
    expect(nothing.conn.db.counter.count()).toBe(0n);
  });

  test('text with quotes, a backslash and a new line', async () => {
    const name = fresh(`it's "q" \\ é\n`);
    const client = await connect();
    await client.conn.reducers.addPlayer({ name, teamId: 1, hp: 5 });

    await subscribe(client.conn, p.where((x) => x.name.eq(name)));

    expect(hps(client)).toEqual([5]);
  });

  test('literals of every type that has them', async () => {
    const client = await connect();
    await client.conn.reducers.setKeyed({ n: 1 });
    await subscribe(client.conn, [tables.byMoment, tables.byUuid, tables.byIdentity, tables.byConnectionId, tables.byU256]);
    const { db } = client.conn;
    const key = <K>(rows: Iterable<{ key: K }>): K => [...rows].map((row) => row.key)[0] as K;
    const [moment, uuid, identity, link] = [
      key(db.byMoment.iter()),
      key(db.byUuid.iter()),
      key(db.byIdentity.iter()),
      key(db.byConnectionId.iter()),
    ];

    const other = await subscribed([
      tables.byMoment.where((x) => x.key.eq(moment)),
      tables.byUuid.where((x) => x.key.eq(uuid)),
      tables.byIdentity.where((x) => x.key.eq(identity)),
      tables.byConnectionId.where((x) => x.key.eq(link)),
      tables.byBool.where((x) => x.key.eq(true)),
      tables.byI8.where((x) => x.key.lt(0)),
      tables.byU256.where((x) => x.key.eq(2n ** 255n)),
      tables.byText.where((x) => x.key.eq('käse')),
    ]);

    const o = other.conn.db;
    const found = [o.byMoment, o.byUuid, o.byIdentity, o.byConnectionId, o.byBool, o.byI8, o.byU256, o.byText];
    expect(found.map((table) => table.count())).toEqual(found.map(() => 1n));
  });

  test('NaN is refused, and the connection lives on', async () => {
    const { conn } = await connect();

    const error = await rejection(subscribe(conn, tables.everything.where((e) => e.nF64.eq(Number.NaN))));

    expect(error).toBeInstanceOf(Error);
    await conn.reducers.nothing({});
  });
});

describe('a semijoin', () => {
  test('shows rows of one table that have a partner, once each, while they have one', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    const query = tables.score
      .where((s) => s.points.gt(0))
      .rightSemijoin(tables.player, (s, p) => p.id.eq(s.playerId))
      .where((p) => p.teamId.eq(teamId));
    await subscribe(client.conn, query);
    const watch = new Watch(client.conn.db.player);
    const { reducers } = client.conn;

    await reducers.addScore({ name: names[0], points: 1 });
    await reducers.addScore({ name: names[0], points: 2 });
    await reducers.addScore({ name: names[1], points: -1 });
    expect(hps(client)).toEqual([10]);
    await reducers.setHp({ name: names[0], hp: 11 });
    expect(hps(client)).toEqual([11]);
    await reducers.removeScores({ name: names[0] });

    expect(hps(client)).toEqual([]);
    expect(watch.kinds()).toEqual(['insert', 'update', 'delete']);
  });

  test('works from the other side', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    await client.conn.reducers.addScore({ name: names[2], points: 5 });

    await subscribe(
      client.conn,
      tables.player.where((p) => p.teamId.eq(teamId)).leftSemijoin(tables.score, (p, s) => p.id.eq(s.playerId)),
    );

    expect(hps(client)).toEqual([30]);
  });
});

describe('sets of queries', () => {
  test('that overlap count: a row leaves with the last set that has it', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    const whole = await subscribe(client.conn, tables.player.where((p) => p.teamId.eq(teamId)));
    const watch = new Watch(client.conn.db.player);
    const part = await subscribe(client.conn, tables.player.where((p) => p.teamId.eq(teamId).and(p.hp.lt(25))));
    const same = await subscribe(client.conn, tables.player.where((p) => p.teamId.eq(teamId)));
    expect(watch.kinds()).toEqual([]);

    await client.conn.reducers.setHp({ name: names[0], hp: 99 }); // leaves one set, stays in two
    expect(watch.kinds()).toEqual(['update']);
    await unsubscribe(whole);
    await unsubscribe(part);
    expect(hps(client)).toEqual([20, 30, 99]);
    await unsubscribe(same);

    expect(hps(client)).toEqual([]);
    expect(watch.kinds()).toEqual(['update', 'delete', 'delete', 'delete']);
  });

  test('without a primary key count, too', async () => {
    const [n, to] = [freshNumber(), freshNumber()];
    const { conn } = await connect();
    await conn.reducers.addNote({ text: 'one', n });
    const first = await subscribe(conn, tables.note.where((x) => x.n.eq(n)));
    const both = await subscribe(conn, [tables.note.where((x) => x.n.eq(n)), tables.note.where((x) => x.n.eq(to))]);
    await conn.reducers.addNote({ text: 'two', n: to });

    await unsubscribe(first);
    expect(conn.db.note.count()).toBe(2n);
    await conn.reducers.moveNotes({ n, to });
    expect([...conn.db.note.iter()].map((x) => x.n)).toEqual([to, to]);
    await unsubscribe(both);

    expect(conn.db.note.count()).toBe(0n);
  });

  test('may be many and the same, as hooks of a page make them', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    const query = tables.player.where((p) => p.teamId.eq(teamId));
    const handles = await Promise.all(Array.from({ length: 100 }, () => subscribe(client.conn, query)));
    const watch = new Watch(client.conn.db.player);

    await client.conn.reducers.setHp({ name: names[0], hp: 1 });
    await Promise.all(handles.slice(1).map(unsubscribe));

    expect(watch.kinds()).toEqual(['update']);
    expect(hps(client)).toEqual([1, 20, 30]);
  });

  test('tell nothing any more when they have ended', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    const handle = await subscribe(client.conn, tables.player.where((p) => p.teamId.eq(teamId)));
    await unsubscribe(handle);
    const watch = new Watch(client.conn.db.player);

    await client.conn.reducers.setHp({ name: names[0], hp: 1 });

    expect(watch.kinds()).toEqual([]);
    expect(handle.isEnded()).toBe(true);
  });

  test('can be ended before they were applied', async () => {
    const client = await connect();
    const { teamId } = await team(client);
    const handle = client.conn.subscriptionBuilder().subscribe(tables.player.where((p) => p.teamId.eq(teamId)));

    await unsubscribe(handle);

    expect(hps(client)).toEqual([]);
    await settled(client);
  });

  test('of all tables', async () => {
    const client = await connect();
    const { names } = await team(client);

    client.conn.subscriptionBuilder().subscribeToAllTables();
    await settled(client);

    expect(client.conn.db.player.name.find(names[1])?.hp).toBe(20);
  });

  test('of "SELECT * FROM *" has every table that may be read', async () => {
    const client = await connect();
    const { names } = await team(client);

    await subscribe(client.conn, 'SELECT * FROM *');

    expect(client.conn.db.player.name.find(names[1])?.hp).toBe(20);
  });
});

describe('a query that is refused', () => {
  const refused: [string, Query, RegExp][] = [
    ['a private table', 'SELECT * FROM secret', /no such table: `secret`.*private/],
    ['a table that there is not', 'SELECT * FROM nowhere', /no such table: `nowhere`/],
    ['a private table in a join', 'SELECT player.* FROM secret JOIN player ON secret.id = player.id', /`secret`/],
    ['a column that there is not', 'SELECT * FROM player WHERE colour = 1', /colour/],
    ['a literal that does not fit', 'SELECT * FROM player WHERE team_id = -1', /team_id|-1/],
    ['no query at all', 'DROP TABLE player', /./],
  ];

  test.each(refused)('%s', async (_what, query, text) => {
    const client = await connect();

    const error = await rejection(subscribe(client.conn, query));

    expect((error as Error).message).toMatch(text);
    await settled(client);
  });

  test('takes its whole set with it, and no other', async () => {
    const client = await connect();
    const { teamId, names } = await team(client);
    const mine = tables.player.where((p) => p.teamId.eq(teamId));
    await subscribe(client.conn, mine.where((p) => p.hp.lt(15)));

    await rejection(subscribe(client.conn, [mine, 'SELECT * FROM secret']));
    await client.conn.reducers.setHp({ name: names[0], hp: 12 });

    expect(hps(client)).toEqual([12]);
  });
});

describe('a view', () => {
  test('is subscribed to like a table, and follows what it reads', async () => {
    const client = await connect();
    await subscribe(client.conn, tables.standings);
    const watch = new Watch(client.conn.db.standings);
    const { teamId, names } = await team(client);

    expect(client.conn.db.standings.teamId.find(teamId)?.players).toBe(3);
    expect(watch.changes.filter((c) => c.row.teamId === teamId).map((c) => c.kind)).toEqual(['insert', 'update', 'update']);
    for (const name of names) {
      await client.conn.reducers.removePlayer({ name });
    }
    expect(client.conn.db.standings.teamId.find(teamId)).toBeFalsy();
  });

  test('of table rows takes a filter', async () => {
    const client = await connect();
    const name = fresh('weak');
    await subscribe(client.conn, tables.weakPlayers.where((p) => p.name.eq(name)));

    await client.conn.reducers.addPlayer({ name, teamId: 1, hp: 5 });
    expect([...client.conn.db.weakPlayers.iter()].map((p) => p.hp)).toEqual([5]);
    await client.conn.reducers.setHp({ name, hp: 50 });

    expect(client.conn.db.weakPlayers.count()).toBe(0n);
  });

  test('of the caller shows each client its own', async () => {
    const [one, other] = await Promise.all([subscribed(tables.mySession), subscribed(tables.mySession)]);

    const own = (client: Client) => [...client.conn.db.mySession.iter()].map((s) => s.identity.toHexString());

    expect(own(one)).toEqual([one.identity.toHexString()]);
    expect(own(other)).toEqual([other.identity.toHexString()]);
  });
});

test('a visibility filter shows each client its own rows, also those that come later', async () => {
  const [one, other] = await Promise.all([subscribed(tables.mail), subscribed(tables.mail)]);
  const text = fresh('letter');

  await one.conn.reducers.post({ to: other.identity, text });
  await one.conn.reducers.post({ to: one.identity, text: 'note to self' });
  await settled(other);

  const texts = (client: Client) => [...client.conn.db.mail.iter()].map((m) => m.text);
  expect(texts(one)).toEqual(['note to self']);
  expect(texts(other)).toEqual([text]);
  await expect(subscribe(other.conn, tables.mail.where((m) => m.to.eq(one.identity)))).resolves.toBeTruthy();
  expect(texts(other)).toEqual([text]);
});
