// A real server in a process of its own, and a real browser to look at it.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { GameServer, REPOSITORY } from '../../../../client_ts/tests/sdk/server';

const DIST = resolve(import.meta.dirname, '../dist');
/** Where pictures go: into the documentation when it is asked for, else they are only taken. */
export const IMAGES = process.env.ARENA_PICTURES ? join(REPOSITORY, 'docs/images') : mkdtempSync(join(tmpdir(), 'arena-pictures-'));

export const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);

/** A server of the arena with its page. */
export class ArenaServer extends GameServer {
  constructor() {
    super(mkdtempSync(join(tmpdir(), 'arena-')), ['examples.arena.module:module', '--static', DIST, '--log-level', 'warning']);
  }

  override async start(): Promise<void> {
    if (!existsSync(join(DIST, 'index.html'))) throw new Error('the page is not built: npm run build');
    await super.start();
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }
}

export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('no Chromium: install it (apt-get install chromium), or set CHROMIUM=/its/path');
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

export interface Player {
  page: Page;
  /** Errors and warnings of the browser's console. */
  complaints: string[];
  close: () => Promise<void>;
}

export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
};

/** Somebody with a browser of their own: an identity of their own. */
export async function join_(browser: Browser, server: ArenaServer, options: BrowserContextOptions = {}): Promise<Player> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(server.uri);
  await page.locator('[data-testid=arena][data-live=true]').waitFor({ timeout: 30_000 });
  return { page, complaints, close: () => context.close() };
}
