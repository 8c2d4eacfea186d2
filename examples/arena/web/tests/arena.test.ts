// The arena as a player sees it: a real server, a real browser.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ArenaServer, CHROMIUM, IMAGES, join_, openBrowser, PHONE, type Player } from './stage';

const server = new ArenaServer();
let browser: Browser;

if (CHROMIUM === undefined) {
  console.warn('no Chromium: the page is not tested. Install it (apt-get install chromium), or set CHROMIUM=/its/path');
}

beforeAll(async () => {
  if (CHROMIUM === undefined) return;
  mkdirSync(IMAGES, { recursive: true });
  await server.start();
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server.close();
});

/** Somebody plays; at the end their console must have stayed quiet. */
async function playing(act: (player: Player) => Promise<void>, options = {}): Promise<void> {
  const player = await join_(browser, server, options);
  try {
    await act(player);
    expect(player.complaints).toEqual([]);
  } finally {
    await player.close();
  }
}

async function eventually(what: () => Promise<boolean>, ms = 20_000): Promise<void> {
  const until = Date.now() + ms;
  while (!(await what())) {
    if (Date.now() > until) throw new Error(`this did not come to pass: ${what.toString()}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

const token = (page: Page, name: string): Locator => page.locator(`[data-name="${name}"]`).first();
/** Where a token stands: the layer that is moved. */
const spot = (place: Locator): Promise<string> => place.evaluate((node) => (node.closest('.placed') as HTMLElement).style.transform);
const number = async (place: Locator, name: string): Promise<number> => Number(await place.getAttribute(name));

function shot(page: Page, name: string): Promise<Buffer> {
  return page.screenshot({ path: join(IMAGES, `arena-${name}.png`) });
}

describe.skipIf(CHROMIUM === undefined)('the arena', () => {
  it('gives who connects a character with gold, a bag and a map full of people', () =>
    playing(async ({ page }) => {
      await expect(page.getByTestId('link').textContent()).resolves.toContain('Live');
      await expect(page.getByTestId('gold').textContent()).resolves.toContain('100');
      expect(await page.locator('.token').count()).toBeGreaterThan(15);
      await eventually(async () => (await page.getByTestId('lots').locator('.lot').count()) > 0);
      expect(await page.getByTestId('daytime').textContent()).toMatch(/Day \d+, (dawn|day|dusk|night)/);
    }));

  it('shows a patrol walking, smoothly, and where its workflow waits', () =>
    playing(async ({ page }) => {
      const guard = token(page, 'Dame Wren');
      const spots = new Set<string>();
      await eventually(async () => spots.add(await spot(guard)).size > 8);
      const card = page.getByTestId('card');
      await eventually(async () => {
        await guard.hover({ force: true }); // it walks, and others may stand before it
        return (await card.count()) > 0 && /Dame Wren.*patrol/s.test((await card.textContent())!);
      });
      expect(await card.textContent()).toMatch(/patrol#\d+.*(select\(ARRIVAL, ThreatDetected, StandDown\)|sleep|spawn\(combat\))/s);
      await shot(page, 'patrol');
    }));

  it('walks where one clicks', () =>
    playing(async ({ page }) => {
      const me = page.locator('.token-me .token-body');
      const before = await spot(me);
      await page.getByTestId('map').click({ position: { x: 760, y: 500 } });
      await eventually(async () => (await spot(me)) !== before);
    }));

  it('tells a newcomer what to do, until it was done', () =>
    playing(async ({ page }) => {
      const hint = page.getByTestId('hint');
      await hint.getByText('Click the ground to walk.').waitFor();
      await page.getByTestId('map').click({ position: { x: 700, y: 200 } });
      await eventually(async () => !(await hint.textContent())!.includes('walk.'));
      await token(page, 'the miller').hover({ force: true });
      await hint.waitFor({ state: 'detached' });
      await page.reload();
      await page.locator('[data-testid=arena][data-live=true]').waitFor();
      expect(await hint.count()).toBe(0);
    }));

  it('keeps the names of the mill and of its miller apart', () =>
    playing(async ({ page }) => {
      const mill = (await page.locator('.place-name', { hasText: 'the mill' }).boundingBox())!;
      const name = page.locator('.token-name', { hasText: 'the miller' });
      await eventually(async () => {
        const miller = (await name.boundingBox())!;
        return miller.y + miller.height <= mill.y || miller.x >= mill.x + mill.width;
      });
    }));

  it('keeps the map as it is while one sells something', () =>
    playing(async ({ page }) => {
      const map = page.getByTestId('map');
      const before = await map.boundingBox();
      await page.locator('.thing').first().click();
      await page.getByText('Put it up').waitFor();
      expect(await map.boundingBox()).toEqual(before);
    }));

  it('shows a buff that ticks down and stacks', () =>
    playing(async ({ page }) => {
      const buff = page.getByTestId('buffs').getByTestId('buff-strength');
      await page.getByTestId('drink-strength').click();
      await buff.waitFor();
      expect(await number(buff, 'data-stacks')).toBe(1);
      const left = await number(buff, 'data-left');
      expect(left).toBeGreaterThan(55_000);
      expect(left).toBeLessThan(62_000);
      await eventually(async () => (await number(buff, 'data-left')) < left - 1500);
      await page.getByTestId('drink-strength').click();
      await eventually(async () => (await number(buff, 'data-stacks')) === 2);
      expect(await page.getByTestId('gold').textContent()).toContain('90');
    }));

  it('says why something is refused', () =>
    playing(async ({ page }) => {
      await page.locator('.name').first().click();
      await page.getByLabel('Your name').fill('Brakka');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText('Somebody is called Brakka already.').waitFor();
    }));

  it('takes an errand from the miller, and finds a herb for it', () =>
    playing(async ({ page }) => {
      await page.getByText('The miller has work for you').click();
      await page.getByText('Herbs 0/2').waitFor();
      await eventually(async () => {
        if ((await page.locator('.intent').count()) === 0) await page.getByText('Find herb').click(); // somebody was quicker
        return (await page.getByText('Herbs 1/2').count()) > 0;
      }, 60_000);
      await page.getByText('give up').click();
      await page.getByText('The miller has work for you').waitFor();
    }));

  it('fights a foe by turns, and flees', () =>
    playing(async ({ page }) => {
      const flee = page.getByText('Flee', { exact: true });
      await eventually(async () => {
        const idle = (await page.locator('.intent').count()) === 0 && (await flee.count()) === 0;
        if (idle) await page.getByText(/^Hunt /).click({ timeout: 1000 }).catch(() => undefined); // others hunt, too
        return (await flee.count()) > 0;
      }, 90_000);
      await page.getByText(/^Strike a /).waitFor();
      await flee.click();
      await eventually(async () => (await flee.count()) === 0);
    }));

  it('shows a bid of one browser in another, and tells who was outbid', () =>
    playing(async ({ page: seller, complaints }) => {
      const bidder = await join_(browser, server);
      const rival = await join_(browser, server);
      const name = (await bidder.page.locator('.name').first().textContent())!;
      await seller.locator('.thing').first().click();
      await seller.getByLabel('Buyout').fill('0');
      await seller.getByLabel('Seconds').fill('120');
      await seller.getByText('Put it up').click();
      const own = seller.locator('.lot', { hasText: 'from you' });
      await own.waitFor();
      const lot = (await own.getAttribute('data-testid'))!;
      const bid = async ({ page }: Player, amount: string) => {
        await page.getByTestId(lot).locator('input').fill(amount);
        await page.getByTestId(lot).getByText('Bid', { exact: true }).click();
      };
      await bid(bidder, '96');
      await eventually(async () => (await own.textContent())!.includes(`96${name}`));
      await eventually(async () => (await bidder.page.getByTestId(lot).textContent())!.includes('you lead'));
      await bid(rival, '100');
      await bidder.page.locator('.toast', { hasText: 'has outbid you' }).waitFor();
      expect([...bidder.complaints, ...rival.complaints, ...complaints]).toEqual([]);
      await bidder.close();
      await rival.close();
    }));

  it('carries what one says to the others', () =>
    playing(async ({ page }) => {
      const other = await join_(browser, server);
      await page.getByLabel('Say something').fill('Is anybody here?');
      await page.keyboard.press('Enter');
      await other.page.getByTestId('chat').getByText('Is anybody here?').waitFor();
      await other.close();
    }));

  it('shows the workflows at work', () =>
    playing(async ({ page }) => {
      await page.getByTestId('tab-workflows').click();
      await eventually(async () => /patrol|combat|auction/.test((await page.getByTestId('feed').textContent()) ?? ''));
    }));

  it('fits a phone: panels are tabs, and nothing is wider than the screen', () =>
    playing(async ({ page }) => {
      for (const view of ['map', 'boss', 'market', 'talk']) {
        await page.getByTestId(`view-${view}`).tap();
        await page.waitForTimeout(400);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
        await shot(page, `phone-${view}`);
      }
    }, PHONE));

  it('shows the boss go from phase to phase, and its fire', () =>
    playing(async ({ page }) => {
      const boss = page.getByTestId('boss');
      await boss.waitFor({ timeout: 60_000 });
      const first = await number(boss, 'data-phase');
      for (const potion of ['healing', 'healing', 'healing', 'strength', 'strength']) {
        await page.getByTestId(`drink-${potion}`).click();
      }
      await page.getByTestId('join-fight').click();
      await eventually(async () => (await boss.count()) > 0 && (await number(boss, 'data-phase')) !== first, 120_000);
      if (first === 1) {
        await page.getByTestId('minions').locator('.minion').first().waitFor();
        await page.locator('[data-testid=boss][data-phase="3"]').waitFor({ timeout: 60_000 });
        await page.getByTestId('drink-healing').click();
      }
      if (await page.locator('[data-testid=boss][data-phase="3"]').count()) {
        await page.getByTestId('breath').waitFor({ timeout: 20_000 }).catch(() => undefined); // unless it was quicker
      }
      await shot(page, 'boss');
    }));

  it('survives a kill -9 of the server without a reload', async () => {
    const { page, complaints, close } = await join_(browser, server);
    const name = await page.locator('.name').first().textContent();
    await page.getByTestId('drink-strength').click();
    const buff = page.getByTestId('buffs').getByTestId('buff-strength');
    await buff.waitFor();
    const left = await number(buff, 'data-left');
    await page.evaluate(() => Object.assign(window, { untouched: true }));
    expect(complaints).toEqual([]);
    await server.stop('SIGKILL');
    await page.getByTestId('cut-off').waitFor();
    expect(await page.locator('.token').count()).toBeGreaterThan(15);
    await shot(page, 'cut-off');
    await server.start();
    await page.locator('[data-testid=arena][data-live=true]').waitFor({ timeout: 60_000 });
    expect(await page.evaluate(() => 'untouched' in window)).toBe(true);
    expect(await page.locator('.name').first().textContent()).toBe(name);
    await page.getByText('1 player', { exact: true }).waitFor(); // in its new connection, too, the page has entered
    const still = await number(buff, 'data-left');
    expect(still).toBeLessThan(left - 500);
    expect(still).toBeGreaterThan(0);
    const guard = token(page, 'Sir Aldo');
    const spots = new Set<string>();
    await eventually(async () => spots.add(await spot(guard)).size > 4);
    // While nobody listened, the browser itself says so; the page has nothing to add.
    expect(complaints.filter((text) => !/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(text))).toEqual([]);
    await close();
  });
});
