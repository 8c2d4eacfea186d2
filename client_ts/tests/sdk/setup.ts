// Generates the bindings of the game, serves it, and tells the tests where.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { GameServer, PYTHON, REPOSITORY } from './server';

declare module 'vitest' {
  interface ProvidedContext {
    uri: string;
    database: string;
    directory: string;
    moduleDefs: { v9: string; v10: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const options = { cwd: REPOSITORY, encoding: 'utf8' as const };
  execFileSync('npm', ['run', '--silent', 'bindings'], {
    ...options,
    cwd: path.join(REPOSITORY, 'client_ts'),
    env: { ...process.env, GAMEDB_PYTHON: PYTHON },
  });
  const definitions = execFileSync(PYTHON, ['-m', 'tests.sdk_game.definitions'], options).split('\n');
  const directory = mkdtempSync(path.join(tmpdir(), 'gamedb-sdk-'));
  const server = new GameServer(directory);
  await server.start();
  project.provide('uri', server.uri);
  project.provide('database', 'sdk-game');
  project.provide('directory', directory);
  project.provide('moduleDefs', { v9: definitions[0] ?? '', v10: definitions[1] ?? '' });
  return async () => {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
    if (process.env['GAMEDB_SERVER_LOG'] !== undefined) {
      console.log(server.log);
    }
  };
}
