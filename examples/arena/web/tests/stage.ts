// A real server in a process of its own, and a real browser to look at it.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

const ROOT = resolve(import.meta.dirname, '../../../..');
const DIST = resolve(import.meta.dirname, '../dist');
/** Where pictures go: into the documentation when it is asked for, else they are only taken. */
export const IMAGES = process.env.ARENA_PICTURES ? join(ROOT, 'docs/images') : mkdtempSync(join(tmpdir(), 'arena-pictures-'));

export const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
const PYTHON = process.env.GAMEDB_PYTHON ?? [join(ROOT, '.venv/bin/python')].find(existsSync) ?? 'python3';
const START_MS_MAX = 60_000;

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
  private readonly data = mkdtempSync(join(tmpdir(), 'arena-'));
  private output = '';
  port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async start(): Promise<void> {
    if (!existsSync(join(DIST, 'index.html'))) throw new Error('the page is not built: npm run build');
    this.port ||= await freePort();
    const listen = `127.0.0.1:${this.port}`;
    const args = ['-m', 'gamedb', 'start', 'examples.arena.module:module', '--listen', listen];
    args.push('--data-dir', this.data, '--static', DIST, '--log-level', 'warning');
    this.process = spawn(PYTHON, args, { cwd: ROOT, env: { ...process.env, PYTHONPATH: ROOT }, stdio: 'pipe' });
    this.process.stdout!.on('data', (text: Buffer) => (this.output += text.toString()));
    this.process.stderr!.on('data', (text: Buffer) => (this.output += text.toString()));
    const until = Date.now() + START_MS_MAX;
    while (Date.now() < until) {
      if (this.process.exitCode !== null) throw new Error(`the server did not start:\n${this.output}`);
      const answer = await fetch(`${this.url}v1/health`).catch(() => null);
      if (answer?.ok) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`the server did not answer:\n${this.output}`);
  }

  /** As a power cut would. */
  kill(): Promise<void> {
    return this.end('SIGKILL');
  }

  async close(): Promise<void> {
    await this.end('SIGTERM');
    rmSync(this.data, { recursive: true, force: true });
  }

  private end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const process = this.process;
    this.process = null;
    if (process === null || process.exitCode !== null) return Promise.resolve();
    return new Promise((done) => {
      process.once('exit', () => done());
      process.kill(signal);
    });
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
export async function join_(browser: Browser, server: GameServer, options: BrowserContextOptions = {}): Promise<Player> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(server.url);
  await page.locator('[data-testid=arena][data-live=true]').waitFor({ timeout: 30_000 });
  return { page, complaints, close: () => context.close() };
}
