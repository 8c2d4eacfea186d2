// Clients that subscribe, unsubscribe and play at random: each cache is what its queries select, after every round.
import type { Infer } from 'spacetimedb';
import { expect, test } from 'vitest';
import NoteRow from './generated/game/note_table';
import PlayerRow from './generated/game/player_table';
import type { SubscriptionHandle } from './generated/game';
import { connect, fresh, freshNumber, settled, subscribe, tables, unsubscribe, type Client, type Query } from './support';

type Player = Infer<typeof PlayerRow>;
type Note = Infer<typeof NoteRow>;

/** A seeded generator (mulberry32), so that a failure can be repeated: RANDOM_SEED=... */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

interface Choice {
  query: Query;
  players: (p: Player, scored: Set<bigint>) => boolean;
  notes: (x: Note) => boolean;
}

const nobody = () => false;

function choices(team: number, n: number): Choice[] {
  const inTeam = tables.player.where((p) => p.teamId.eq(team));
  const scored = tables.score
    .where((s) => s.points.gt(0))
    .rightSemijoin(tables.player, (s, p) => s.playerId.eq(p.id))
    .where((p) => p.teamId.eq(team));
  const here = tables.note.where((x) => x.n.eq(n));
  const there = tables.note.where((x) => x.n.eq(n + 1));
  return [
    { query: inTeam, players: (p) => p.teamId === team, notes: nobody },
    { query: inTeam.where((p) => p.hp.lt(50)), players: (p) => p.teamId === team && p.hp < 50, notes: nobody },
    { query: inTeam.where((p) => p.hp.gte(30)), players: (p) => p.teamId === team && p.hp >= 30, notes: nobody },
    { query: scored, players: (p, with_) => p.teamId === team && with_.has(p.id), notes: nobody },
    { query: here, players: nobody, notes: (x) => x.n === n },
    { query: [here, there], players: nobody, notes: (x) => x.n === n || x.n === n + 1 },
    { query: [inTeam, there], players: (p) => p.teamId === team, notes: (x) => x.n === n + 1 },
  ];
}

test.each([1, 2, 3, 4])('caches are what queries select (%s)', async (number) => {
  const seed = Number(process.env['RANDOM_SEED'] ?? Date.now() % 2 ** 31) + number;
  const random = generator(seed);
  const [team, n] = [freshNumber(), freshNumber()];
  const all = choices(team, n);
  const names = Array.from({ length: 5 }, () => fresh('r'));
  const observer = await connect();
  await subscribe(observer.conn, [tables.player, tables.score, tables.note]);
  const clients = await Promise.all([1, 2, 3].map(() => connect()));
  const live = clients.map(() => new Map<SubscriptionHandle, Choice>());

  const act = async (client: Client): Promise<unknown> => {
    const { reducers } = client.conn;
    const name = names[random(names.length)] as string;
    const calls = [
      () => reducers.addPlayer({ name, teamId: team, hp: random(100) }),
      () => reducers.setHp({ name, hp: random(100) }),
      () => reducers.replacePlayer({ name, hp: random(100) }),
      () => reducers.setTeam({ name, teamId: random(2) === 0 ? team : team + 1 }),
      () => reducers.addScore({ name, points: random(3) - 1 }),
      () => reducers.removeScores({ name }),
      () => reducers.removePlayer({ name }),
      () => reducers.addNote({ text: `${random(4)}`, n: n + random(2) }),
      () => reducers.moveNotes({ n: n + random(2), to: n + random(2) }),
      () => reducers.removeNotes({ n: n + random(2) }),
    ];
    return (calls[random(calls.length)] as () => Promise<void>)().catch(() => undefined); // no such player, say
  };

  for (let round = 0; round < 25; round += 1) {
    const work: Promise<unknown>[] = [];
    for (let step = 0; step < 12; step += 1) {
      const at = random(clients.length);
      const [client, mine] = [clients[at] as Client, live[at] as Map<SubscriptionHandle, Choice>];
      const what = random(6);
      if (what === 0) {
        const choice = all[random(all.length)] as Choice;
        work.push(subscribe(client.conn, choice.query).then((handle) => mine.set(handle, choice)));
      } else if (what === 1 && mine.size > 0) {
        const handle = [...mine.keys()][random(mine.size)] as SubscriptionHandle;
        mine.delete(handle);
        work.push(unsubscribe(handle));
      } else {
        work.push(act(client));
      }
    }
    await Promise.all(work);
    await Promise.all([...clients, observer].map(settled));

    const { db } = observer.conn;
    const with_ = new Set([...db.score.iter()].filter((s) => s.points > 0).map((s) => s.playerId));
    for (const [at, client] of clients.entries()) {
      const chosen = [...(live[at]?.values() ?? [])];
      const players = [...db.player.iter()].filter((p) => chosen.some((c) => c.players(p as Player, with_)));
      const notes = [...db.note.iter()].filter((x) => chosen.some((c) => c.notes(x)));
      const key = (row: { id?: bigint; text?: string }) => String(row.id ?? row.text);
      const sorted = <Row extends object>(rows: Iterable<Row>) => [...rows].sort((a, b) => (key(a) < key(b) ? -1 : 1));
      const note = (x: Note) => `${x.n} ${x.text}`;
      expect(sorted(client.conn.db.player.iter()), `seed ${seed - number}, round ${round}`).toEqual(sorted(players));
      expect([...client.conn.db.note.iter()].map(note).sort(), `seed ${seed - number}`).toEqual(notes.map(note).sort());
    }
  }
});
