// A server that ends, gracefully or not, and comes again: what clients see of it, and what is still there.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GameServer } from './server';
import { connect, fresh, subscribe, tables } from './support';

let server: GameServer;
const directory = mkdtempSync(path.join(tmpdir(), 'gamedb-restart-'));

beforeAll(async () => {
  server = new GameServer(directory);
  await server.start();
});

afterAll(async () => {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

const here = () => connect((b) => b.withUri(server.uri));

test('after kill -9 everything that was confirmed is there, and who was connected is not', async () => {
  const name = fresh('kim');
  const first = await connect((b) => b.withUri(server.uri).withConfirmedReads(true));
  await first.conn.reducers.addPlayer({ name, teamId: 1, hp: 42 });

  await server.stop('SIGKILL');
  await first.closed;
  await server.start();

  const again = await connect((b) => b.withUri(server.uri).withToken(first.token));
  await subscribe(again.conn, [tables.player, tables.session]);
  expect(again.identity.isEqual(first.identity)).toBe(true);
  expect(again.conn.db.player.name.find(name)?.hp).toBe(42);
  expect([...again.conn.db.session.iter()].map((s) => s.connection.toHexString())).toEqual([
    again.conn.connectionId.toHexString(),
  ]);
});

test('a server that is told to end says so to its clients, and keeps what they did', async () => {
  const name = fresh('lou');
  const client = await here();
  await client.conn.reducers.addPlayer({ name, teamId: 1, hp: 7 });

  const code = await server.stop('SIGTERM');
  await client.closed;

  expect(code).toBe(0);
  await server.start();
  const again = await here();
  await subscribe(again.conn, tables.player);
  expect(again.conn.db.player.name.find(name)?.hp).toBe(7);
});
