// Generates the bindings of the game, serves it, and tells the tests where.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

const REPOSITORY = path.resolve(import.meta.dirname, '../../..');
const PYTHON = process.env['GAMEDB_PYTHON'] ?? path.join(REPOSITORY, '.venv/bin/python');

declare module 'vitest' {
  interface ProvidedContext {
    uri: string;
    database: string;
    moduleDefs: { v9: string; v10: string };
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

async function answers(uri: string, server: ChildProcess, log: () => string): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    if (server.exitCode !== null) {
      throw new Error(`the server ended with ${server.exitCode}:\n${log()}`);
    }
    const response = await fetch(`${uri}/v1/ping`).catch(() => undefined);
    if (response?.ok) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the server does not answer at ${uri}:\n${log()}`);
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const options = { cwd: REPOSITORY, encoding: 'utf8' as const };
  execFileSync('npm', ['run', '--silent', 'bindings'], {
    ...options,
    cwd: path.join(REPOSITORY, 'client_ts'),
    env: { ...process.env, GAMEDB_PYTHON: PYTHON },
  });
  const definitions = execFileSync(PYTHON, ['-m', 'tests.sdk_game.definitions'], options).split('\n');
  const data = mkdtempSync(path.join(tmpdir(), 'gamedb-sdk-'));
  const uri = `http://127.0.0.1:${await freePort()}`;
  const server = spawn(
    PYTHON,
    ['-m', 'tests.sdk_game.serve', uri.replace('http://', ''), data],
    { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let log = '';
  server.stdout.on('data', (chunk: Buffer) => (log += chunk.toString()));
  server.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  await answers(uri, server, () => log);
  project.provide('uri', uri);
  project.provide('database', 'sdk-game');
  project.provide('moduleDefs', { v9: definitions[0] ?? '', v10: definitions[1] ?? '' });
  return async () => {
    server.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
    if (process.env['GAMEDB_SERVER_LOG'] !== undefined) {
      console.log(log);
    }
  };
}
