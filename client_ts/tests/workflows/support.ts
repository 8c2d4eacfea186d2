// A served game with workflows, and clients of it that end with their test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WorkflowClient } from 'gamedb-client';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { DbConnection, type DbConnectionBuilder } from '../sdk/generated/ventures';
import type { Workflows } from '../sdk/generated/ventures/workflows';
import { GameServer } from '../sdk/server';

export interface Client {
  conn: DbConnection;
  workflows: WorkflowClient<Workflows>;
  /** Resolves when the connection has ended. */
  closed: Promise<void>;
}

/** A server for the tests of a file, on data of its own. */
export function serve(): { readonly server: GameServer } {
  const directory = mkdtempSync(path.join(tmpdir(), 'gamedb-ventures-'));
  const served = {} as { server: GameServer };
  beforeAll(async () => {
    served.server = new GameServer(directory, ['tests.sdk_game.ventures:module']);
    await served.server.start();
  });
  afterAll(async () => {
    await served.server.stop('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  return served;
}

const open: Client[] = [];

afterEach(async () => {
  for (const client of open.splice(0)) {
    client.conn.disconnect();
    await client.closed;
  }
});

export function builder(server: GameServer): DbConnectionBuilder {
  return DbConnection.builder().withUri(server.uri).withDatabaseName('ventures').withConfirmedReads(true);
}

/** A client whose connection is ready; it is closed after the test. */
export function connect(server: GameServer): Promise<Client> {
  return new Promise((resolve, reject) => {
    let end: () => void;
    const closed = new Promise<void>((done) => (end = done));
    builder(server)
      .onConnect((conn) => {
        const client = { conn, workflows: new WorkflowClient<Workflows>(conn), closed };
        open.push(client);
        resolve(client);
      })
      .onConnectError((_ctx, error) => reject(error))
      .onDisconnect(() => end())
      .build();
  });
}

let numbers = 0n;

/** An entity that no other test uses. */
export function freshEntity(): bigint {
  numbers += 1n;
  return BigInt(process.pid) * 1_000_000n + numbers;
}
