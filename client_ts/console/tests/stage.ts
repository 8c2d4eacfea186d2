// A real server with two games in a process of its own, and a real browser that looks at it.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { GameServer, PYTHON, REPOSITORY } from '../../tests/sdk/server';

/** Where pictures go: into the documentation when it is asked for, else they are only taken. */
export const IMAGES = process.env.CONSOLE_PICTURES ? join(REPOSITORY, 'docs/images') : mkdtempSync(join(tmpdir(), 'console-pictures-'));

export const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);

/** A server with the village, a copy whose code a test can change. */
export class VillageServer extends GameServer {
  private readonly village: string;

  /** `games`: what `gamedb start` gets beside the village. */
  constructor(games: string[]) {
    const directory = mkdtempSync(join(tmpdir(), 'village-'));
    const data = join(directory, 'data');
    mkdirSync(data);
    super(data, ['village:module', ...games], directory);
    this.village = join(directory, 'village.py');
    copyFileSync(join(import.meta.dirname, 'village.py'), this.village);
  }

  get token(): string {
    return readFileSync(join(this.data, 'owner.token'), 'utf8').trim();
  }

  /** The link that was printed. */
  get link(): string {
    return /http:\S+\/console\/#token=\S+/.exec(this.log)?.[0] ?? '';
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
    const answer = await fetch(`${this.uri}/v1/database/village/${path}`, { method: 'POST', body, headers });
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  /** Change the code of the village, as its author would. */
  edit(before: string, after: string): void {
    const text = readFileSync(this.village, 'utf8');
    if (!text.includes(before)) throw new Error(`the village has no ${before}`);
    writeFileSync(this.village, text.replace(before, after));
  }

  /** What a script beside this file prints when it gets the database of the village, while the server is stopped. */
  python(script: string): string {
    const args = [join(import.meta.dirname, script), join(this.data, 'village.db')];
    return execFileSync(PYTHON, args, { cwd: REPOSITORY, env: this.environment, encoding: 'utf8' });
  }

  override async start(): Promise<void> {
    if (!existsSync(join(REPOSITORY, 'gamedb/console/index.html'))) throw new Error('the console is not built: make console');
    await super.start();
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(dirname(this.village), { recursive: true, force: true });
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
export async function look(browser: Browser, server: VillageServer, options: BrowserContextOptions & { stranger?: boolean } = {}): Promise<Looker> {
  const { stranger = false, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1360, height: 800 }, colorScheme: 'dark', ...rest });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${server.uri}/console/${stranger ? '' : `#token=${server.token}`}`);
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
