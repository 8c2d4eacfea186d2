// A real server with two games in a process of its own, and a real browser that looks at it.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

const ROOT = resolve(import.meta.dirname, '../../..');
/** Where pictures go: into the documentation when it is asked for, else they are only taken. */
export const IMAGES = process.env.CONSOLE_PICTURES ? join(ROOT, 'docs/images') : mkdtempSync(join(tmpdir(), 'console-pictures-'));

export const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
const PYTHON = process.env.GAMEDB_PYTHON ?? [join(ROOT, '.venv/bin/python')].find(existsSync) ?? 'python3';
const START_MS_MAX = 90_000;

function freePort(): Promise<number> {
  return new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => done(port));
    });
  });
}

export class GameServer {
  private process: ChildProcess | null = null;
  private readonly directory = mkdtempSync(join(tmpdir(), 'village-'));
  private output = '';
  port = 0;

  /** `games`: what `gamedb start` gets; the village is a copy that a test can change. */
  constructor(private readonly games: string[]) {
    copyFileSync(join(import.meta.dirname, 'village.py'), join(this.directory, 'village.py'));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get data(): string {
    return join(this.directory, 'data');
  }

  get token(): string {
    return readFileSync(join(this.data, 'owner.token'), 'utf8').trim();
  }

  /** The link that was printed. */
  get link(): string {
    return /http:\S+\/console\/#token=\S+/.exec(this.output)?.[0] ?? '';
  }

  /** Ask the village in SQL, as its owner. */
  async sql(query: string): Promise<unknown[][]> {
    const [answer] = (await (await this.post('sql', query)).json()) as { rows: unknown[][] }[];
    return answer!.rows;
  }

  /** Call a reducer of the village, as its owner; `name?confirmed=false` does not wait for the disk. */
  async call(name: string, ...args: unknown[]): Promise<void> {
    await this.post(`call/${name}`, JSON.stringify(args));
  }

  private async post(path: string, body: string): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${this.url}/v1/database/village/${path}`, { method: 'POST', body, headers });
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  /** Change the code of the village, as its author would. */
  edit(before: string, after: string): void {
    const path = join(this.directory, 'village.py');
    const text = readFileSync(path, 'utf8');
    if (!text.includes(before)) throw new Error(`the village has no ${before}`);
    writeFileSync(path, text.replace(before, after));
  }

  /** What a script beside this file prints when it gets the database of the village, while the server is stopped. */
  python(script: string): string {
    const args = [join(import.meta.dirname, script), join(this.data, 'village.db')];
    return execFileSync(PYTHON, args, { cwd: ROOT, env: this.environment, encoding: 'utf8' });
  }

  private get environment(): NodeJS.ProcessEnv {
    return { ...process.env, PYTHONPATH: `${ROOT}:${this.directory}`, PYTHONDONTWRITEBYTECODE: '1' };
  }

  async start(): Promise<void> {
    if (!existsSync(join(ROOT, 'gamedb/console/index.html'))) throw new Error('the console is not built: make console');
    mkdirSync(this.data, { recursive: true });
    this.port ||= await freePort();
    const args = ['-m', 'gamedb', 'start', ...this.games, '--listen', `127.0.0.1:${this.port}`, '--data-dir', this.data];
    this.process = spawn(PYTHON, args, {
      cwd: ROOT,
      env: this.environment,
      stdio: 'pipe',
    });
    this.process.stdout!.on('data', (text: Buffer) => (this.output += text.toString()));
    this.process.stderr!.on('data', (text: Buffer) => (this.output += text.toString()));
    const until = Date.now() + START_MS_MAX;
    while (Date.now() < until) {
      if (this.process.exitCode !== null) throw new Error(`the server did not start:\n${this.output}`);
      const answer = await fetch(`${this.url}/v1/ping`).catch(() => null);
      if (answer?.ok) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`the server did not answer:\n${this.output}`);
  }

  stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    const process = this.process;
    this.process = null;
    if (process === null || process.exitCode !== null) return Promise.resolve();
    return new Promise((done) => {
      process.once('exit', () => done());
      process.kill(signal);
    });
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Wait until something is so. */
export async function eventually(what: () => Promise<boolean>, ms = 20_000): Promise<void> {
  const until = Date.now() + ms;
  while (!(await what())) {
    if (Date.now() > until) throw new Error(`this did not come to pass: ${what.toString()}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('no Chromium: install it (apt-get install chromium), or set CHROMIUM=/its/path');
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

export interface Looker {
  page: Page;
  /** Errors and warnings of the browser's console. */
  complaints: string[];
  to: (hash: string) => Promise<void>;
  close: () => Promise<void>;
}

export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

/** Somebody with a browser of their own; signed in, unless they are a stranger. */
export async function look(browser: Browser, server: GameServer, options: BrowserContextOptions & { stranger?: boolean } = {}): Promise<Looker> {
  const { stranger = false, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1360, height: 800 }, colorScheme: 'dark', ...rest });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${server.url}/console/${stranger ? '' : `#token=${server.token}`}`);
  if (!stranger) await page.locator('[data-testid=link].is-live').waitFor({ timeout: 30_000 });
  return {
    page,
    complaints,
    to: async (hash) => {
      await page.evaluate((where) => (location.hash = where), hash);
    },
    close: () => context.close(),
  };
}
