// A server of the game in a process of its own.
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import path from 'node:path';
import { fetch } from 'undici';

export const REPOSITORY = path.resolve(import.meta.dirname, '../../..');
export const PYTHON = process.env['GAMEDB_PYTHON'] ?? path.join(REPOSITORY, '.venv/bin/python');

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

export class GameServer {
  readonly uri: string;
  log = '';
  #process: ChildProcess | undefined;
  #ended: Promise<number | null> = Promise.resolve(null);

  constructor(
    readonly port: number,
    readonly directory: string,
    readonly game = 'tests.sdk_game.game:module',
  ) {
    this.uri = `http://127.0.0.1:${port}`;
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const options = ['--listen', `127.0.0.1:${this.port}`, '--data-dir', this.directory];
    const process = spawn(PYTHON, ['-m', 'gamedb', 'start', this.game, ...options], {
      cwd: REPOSITORY,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = process;
    process.stdout.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    process.stderr.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    this.#ended = new Promise((resolve) => process.once('exit', (code) => resolve(code)));
    const deadline = Date.now() + 60_000;
    while (Date.now() < deadline) {
      if (process.exitCode !== null) {
        throw new Error(`the server ended with ${process.exitCode}:\n${this.log}`);
      }
      const response = await fetch(`${this.uri}/v1/ping`).catch(() => undefined);
      if (response?.ok) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the server does not answer at ${this.uri}:\n${this.log}`);
  }

  /** Sends a signal; resolves with the exit code when it has ended. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> {
    this.#process?.kill(signal);
    return this.#ended;
  }
}
