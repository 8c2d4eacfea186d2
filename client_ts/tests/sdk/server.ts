// A server in a process of its own: for the tests of this package, of the console, and of the arena's page.
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import path from 'node:path';

export const REPOSITORY = path.resolve(import.meta.dirname, '../../..');
export const PYTHON = process.env['GAMEDB_PYTHON'] ?? path.join(REPOSITORY, '.venv/bin/python');
const START_MS_MAX = 90_000;

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
  /** Chosen at the first start, and then the same. */
  port = 0;
  log = '';
  #process: ChildProcess | undefined;
  #ended: Promise<number | null> = Promise.resolve(null);

  /**
   * `data`: the directory of its data. `games`: what `gamedb start` gets beside that, options too. `code`: a directory
   * with more modules.
   */
  constructor(
    readonly data: string,
    private readonly games = ['tests.sdk_game.game:module'],
    private readonly code?: string,
  ) {}

  get uri(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** For Python that shall know the same modules; what a test edits in them must not come from a cache. */
  get environment(): NodeJS.ProcessEnv {
    const PYTHONPATH = [REPOSITORY, ...(this.code === undefined ? [] : [this.code])].join(path.delimiter);
    return { ...process.env, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1' };
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    this.port ||= await freePort();
    const options = ['--listen', `127.0.0.1:${this.port}`, '--data-dir', this.data];
    const process = spawn(PYTHON, ['-m', 'gamedb', 'start', ...this.games, ...options], {
      cwd: REPOSITORY,
      env: this.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = process;
    process.stdout.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    process.stderr.on('data', (chunk: Buffer) => (this.log += chunk.toString()));
    this.#ended = new Promise((resolve) => process.once('exit', (code) => resolve(code)));
    const deadline = Date.now() + START_MS_MAX;
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
