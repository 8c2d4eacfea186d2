// The console as an operator uses it: a real server with the arena and a village, a real browser.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timeText } from '../src/module/values';
import { CHROMIUM, eventually, IMAGES, look, openBrowser, PHONE, VillageServer, type Looker } from './stage';

const server = new VillageServer(['--database', 'arena=examples.arena.module:module']);
let browser: Browser;

if (CHROMIUM === undefined) console.warn('no Chromium: the console is not tested. Install it (apt-get install chromium), or set CHROMIUM=/its/path');

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

/** Somebody looks; at the end their browser's console must have stayed quiet. */
async function looking(act: (looker: Looker) => Promise<void>, options: BrowserContextOptions & { stranger?: boolean } = {}): Promise<void> {
  const looker = await look(browser, server, options);
  try {
    await act(looker);
    expect(looker.complaints).toEqual([]);
  } finally {
    await looker.close();
  }
}

const shot = (page: Page, name: string): Promise<Buffer> => page.screenshot({ path: join(IMAGES, `console-${name}.png`) });
const lines = (page: Page): Locator => page.locator('.line[data-id]');
const button = (page: Page, name: string): Locator => page.getByRole('button', { name, exact: true });
const field = (page: Page, path: string): Locator => page.locator(`[data-path="${path}"] :is(input, textarea, select)`).last();

/** Open a workflow of the village by its type: the newest one. */
async function openNewest(looker: Looker, type: string): Promise<void> {
  await looker.to(`#/village/workflows?type=${type}`);
  await looker.page.locator('.line', { hasText: type }).first().click();
  await looker.page.locator('[data-testid=workflow]', { hasText: type }).waitFor();
}

/** As `tests/moments.py` prints them. */
interface Moment {
  number: number;
  at: string;
  kind: string;
  step: string;
  state: object;
}

/** What the page has of an event: `kind` is null for a step, which it names by what came. */
type ShownMoment = Omit<Moment, 'kind'> & { kind: string | null };

const asShown = ({ number, at, kind, step, state }: Moment): ShownMoment => ({
  number,
  at: timeText(BigInt(Date.parse(at)) * 1000n),
  kind: kind === 'step' ? null : kind.replace('_', ' '),
  step,
  state,
});

async function momentShown(page: Page, event: Locator): Promise<ShownMoment> {
  await event.getByRole('button').click();
  await page.locator('[data-testid=timeline] > .is-chosen').and(event).waitFor();
  const closed = page.locator('[data-testid=state] [aria-expanded=false] > .tree-branch');
  while (await closed.count()) await closed.first().click();
  const kinds = ['started', 'failed', 'resumed', 'cancelled', 'completed', 'attempt failed'];
  const kind = await event.locator('.timeline-kind').innerText();
  return {
    number: Number(await event.locator('[data-number]').innerText()),
    at: (await event.locator('time').getAttribute('title')) ?? '',
    kind: kinds.includes(kind) ? kind : null,
    step: (await event.locator('.timeline-step').count()) ? ((await event.locator('.timeline-step').getAttribute('title')) ?? '') : '',
    state: await page.getByTestId('state').evaluate((panel): object => {
      const fields = (list: Element): [string, unknown][] =>
        [...list.children].filter((item) => !item.classList.contains('is-gone')).map((item) => [(item as HTMLElement).dataset.name ?? '', value(item)]);
      const value = (item: Element): unknown => {
        const list = item.querySelector(':scope > ul');
        if (list === null) return JSON.parse(item.querySelector(':scope > .tree-row > .tree-value')!.textContent!);
        const isArray = item.querySelector(':scope > .tree-row > .tree-note')!.textContent!.startsWith('[');
        return isArray ? fields(list).map(([, one]) => one) : Object.fromEntries(fields(list));
      };
      return Object.fromEntries(fields(panel.querySelector('.tree')!));
    }),
  };
}

describe.skipIf(CHROMIUM === undefined)('the console', () => {
  it('shows a stranger nothing but a place to sign in, and tells them nothing', () =>
    looking(async ({ page }) => {
      await page.getByLabel('Token').waitFor();
      expect(await page.locator('body').innerText()).not.toMatch(/village|arena|Workflows/);
    }, { stranger: true }));

  it.each(['/v1/databases', '/v1/database/village/describe', '/metrics', '/v1/database/village/logs'])('has nothing for strangers at %s', async (path) => {
    const answer = await fetch(`${server.uri}${path}`);
    expect([401, 403]).toContain(answer.status);
    expect(await answer.text()).not.toMatch(/bakery|secret/);
  });

  it('says why a token is refused', async () => {
    const { page, close } = await look(browser, server, { stranger: true });
    await page.getByLabel('Token').fill('nonsense');
    await button(page, 'Sign in').click();
    await page.getByRole('alert').getByText(/token/i).waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    await close();
  });

  it('signs in by the link that the server prints, and takes the token out of the address', () =>
    looking(async ({ page }) => {
      expect(server.link).toContain(server.token);
      await page.goto(server.link);
      await page.locator('[data-testid=link].is-live').waitFor();
      expect(page.url()).not.toContain('token');
    }, { stranger: true }));

  it('lists workflows, filters them by status, type, entity and words', () =>
    looking(async ({ page, to }) => {
      await to('#/arena/workflows');
      await eventually(async () => (await lines(page).count()) > 8);
      await eventually(async () => /\d:\d\d/.test((await page.locator('.line .timer').allInnerTexts()).join()));
      await eventually(async () => /Suspended\s*\d/.test(await page.getByRole('group', { name: 'Status' }).innerText()));
      await to('#/village/workflows');
      await eventually(async () => (await lines(page).count()) === 7);
      await page.getByLabel('Type').selectOption('stall');
      await eventually(async () => (await lines(page).count()) === 3);
      await page.getByLabel('Type').selectOption('');
      await page.getByLabel('Entity').fill('7');
      await eventually(async () => (await lines(page).allInnerTexts()).every((text) => text.includes('bakery')));
      await page.getByLabel('Entity').fill('');
      await page.keyboard.press('Escape');
      await page.getByLabel('Search').fill('the mill');
      await eventually(async () => (await lines(page).count()) === 1 && (await lines(page).first().innerText()).includes('mill'));
      await page.getByLabel('Search').fill('');
      await button(page, 'Failed 0').click();
      await page.getByText('No workflow is like that').waitFor();
    }));

  it('filters by age and by the next timer, as time goes on', () =>
    looking(async ({ page, to }) => {
      await page.clock.install();
      await page.reload();
      await server.call('workflow_start', 'ferry', { none: [] }, { none: [] }, '{"waits": "PT1H30M"}');
      const types = async (): Promise<string> => (await lines(page).locator('.line-type').allInnerTexts()).map((text) => text.replace(/\W.*|manual/s, '')).sort().join();
      await to('#/village/workflows');
      await eventually(async () => (await lines(page).count()) === 8);
      const [age, timer] = [page.getByLabel('Age', { exact: true }), page.getByLabel('Next timer')];
      await timer.selectOption('Fired by hand');
      await eventually(async () => (await types()) === 'bakery');
      await timer.selectOption('No timer');
      await eventually(async () => (await lines(page).count()) === 6 && !/bakery|ferry/.test(await types()));
      await timer.selectOption('Overdue');
      await page.getByText('No workflow is like that').waitFor();
      await timer.selectOption('Due within');
      const within = page.getByRole('textbox', { name: 'Due within' });
      expect(await within.inputValue()).toBe('1h');
      await page.getByText('No workflow is like that').waitFor();
      await within.fill('soon');
      await page.getByRole('alert').getByText('a duration').waitFor();
      await within.fill('2h');
      await eventually(async () => (await types()) === 'ferry');
      expect(await page.getByRole('alert').count()).toBe(0);
      await within.fill('1h');
      await page.getByText('No workflow is like that').waitFor();
      await page.clock.fastForward('01:00:00');
      await eventually(async () => (await types()) === 'ferry');

      // The address has it all, and it goes together with the other filters.
      await to('#/village/workflows?age=younger:30m&timer=overdue&type=ferry');
      await page.getByText('No workflow is like that').waitFor();
      expect([await age.inputValue(), await timer.inputValue()]).toEqual(['younger', 'overdue']);
      await age.selectOption('Older than');
      await page.clock.fastForward('01:00:00');
      await eventually(async () => (await types()) === 'ferry' && (await lines(page).innerText()).includes('late'));
      expect(page.url()).toContain('age=older%3A30m&timer=overdue');
      await page.getByRole('textbox', { name: 'Older than' }).fill('1d');
      await button(page, 'Show all').click();
      await eventually(async () => (await lines(page).count()) === 8);
    }));

  it('is used with keys alone', () =>
    looking(async ({ page, to }) => {
      await to('#/village/workflows');
      await lines(page).first().waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      const id = await page.locator('.line.is-selected').getAttribute('data-id');
      await page.keyboard.press('Enter');
      await page.getByTestId('workflow').getByText(`#${id}`).first().waitFor();
      await page.keyboard.press('Escape');
      await lines(page).first().waitFor();
      await page.keyboard.press('/');
      expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Search');
      await page.keyboard.press('Escape');
      for (const [key, place] of [['t', 'tables'], ['q', 'sql'], ['c', 'calls'], ['s', 'server'], ['l', 'logs'], ['w', 'workflows']] as const) {
        await page.evaluate(() => (document.activeElement as HTMLElement).blur());
        await page.keyboard.press('g');
        await page.keyboard.press(key);
        await page.waitForURL(new RegExp(`#/village/${place}`));
      }
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      await page.keyboard.press('Escape');
    }));

  it('fires a timer of a manual workflow, sends it a signal, and shows what changed', () =>
    looking(async (looker) => {
      const { page } = looker;
      await openNewest(looker, 'bakery');
      const state = page.getByTestId('state');
      await state.getByText('poppy').waitFor();
      await state.getByText('list[Order]').waitFor(); // values have their types beside them
      const here = page.locator('.code-line.is-here');
      expect(await here.innerText()).toContain('await timer(BakeryTimer.RISE');
      await page.getByTestId('waits').getByText('rise').waitFor();
      await button(page, 'Fire').click();
      await eventually(async () => (await here.innerText()).includes('await select('));
      await page.getByTestId('waits').getByText('Order').waitFor();

      await page.keyboard.press('s');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      await field(page, 'customer').fill('Ann');
      await field(page, 'loaves').fill('many');
      await button(page, 'Send Order').click();
      await page.locator('[data-path=loaves]').getByText('a whole number').waitFor();
      await field(page, 'loaves').fill('3');
      await button(page, 'Send Order').click();
      await dialog.waitFor({ state: 'detached' });
      await eventually(async () => /sold\s*3\s*was 0/.test(await state.innerText()));
      expect(await state.locator('.is-changed > .tree-row .tree-name').allInnerTexts()).toContain('left');
      const timeline = page.getByTestId('timeline');
      expect(await timeline.locator('.timeline-kind').allInnerTexts()).toEqual(['Order', 'BakeryTimer.RISE', 'started']);
      await shot(page, 'workflow');
      // An event shows the state as it was after it.
      await timeline.getByText('BakeryTimer.RISE').first().click();
      await eventually(async () => /sold\s*0/.test(await state.innerText()));
      await page.getByText('State after event 2').waitFor();
    }));

  it('starts a workflow from a form, with errors at their fields, those of the server too', () =>
    looking(async ({ page, to }) => {
      await to('#/village/workflows?type=bakery');
      await button(page, 'Start').click();
      await field(page, 'loaves').fill('4.5');
      await field(page, 'rise').fill('soon');
      await page.getByText('by hand: they fire').click();
      await button(page, 'Start by hand').click();
      await page.locator('[data-path=loaves]').getByText('a whole number').waitFor();
      await page.locator('[data-path=rise]').getByText('a duration').waitFor();
      await shot(page, 'start');
      await field(page, 'rise').fill('90m');
      await field(page, 'loaves').fill('123456789012345678901234567890');
      await page.locator('[data-path=flour] select').selectOption('wheat');
      await page.locator('[data-path=seeds]').getByText('Add').click();
      await field(page, 'seeds[0]').fill('sesame');
      await button(page, 'Start by hand').click();
      // What only the server can tell is shown at its field as well, when it names one.
      await eventually(async () => (await page.getByRole('alert').count()) > 0 || (await page.getByTestId('workflow').count()) > 0);
      if (await page.getByRole('dialog').count()) {
        await field(page, 'loaves').fill('9');
        await button(page, 'Start by hand').click();
      }
      await page.getByTestId('workflow').waitFor();
      await eventually(async () => /"wheat"[\s\S]*"PT5400S"[\s\S]*"sesame"/.test(await page.getByTestId('state').innerText()));
      expect(await page.locator('.workflow-title').innerText()).toContain('manual');
    }));

  it('shows the parent and the children, and cancels them together', () =>
    looking(async (looker) => {
      const { page } = looker;
      await openNewest(looker, 'market_day');
      const family = page.getByTestId('family');
      await eventually(async () => (await family.locator('[data-status=Suspended]').count()) === 4);
      await page.getByText('all of these').waitFor();
      await button(page, 'Cancel').click();
      await button(page, 'Cancel it').click();
      await eventually(async () => (await family.locator('[data-status=Cancelled]').count()) === 4);
      await page.locator('[data-testid=workflow][data-status=Cancelled]').waitFor();
    }));

  it('shows the attempts of a procedure, and its last error', () =>
    looking(async (looker) => {
      const { page } = looker;
      await openNewest(looker, 'almanac');
      const calls = page.getByTestId('procedures');
      await eventually(async () => /forecast[\s\S]*attempt \d of 9[\s\S]*the sky of day 1 is covered/.test(await calls.innerText()));
      await page.getByTestId('timeline').getByText('attempt failed').first().waitFor();
    }));

  it('shows tables live, sorts and filters them, and calls reducers from a form', () =>
    looking(async ({ page, to }) => {
      await to('#/village/calls/build');
      await button(page, 'Call').click();
      await page.locator('[data-path="at.x"]').getByText('needed').waitFor();
      await field(page, 'at.x').fill('3');
      await field(page, 'at.y').fill('-4');
      await button(page, 'Call').click();
      await page.getByTestId('outcomes').getByText('a house needs a name').waitFor();
      for (const [name, x] of [['Oak', '30'], ['Ash', '20'], ['Elm', '10']] as const) {
        await field(page, 'name').fill(name);
        await field(page, 'at.x').fill(x);
        await button(page, 'Call').click();
        await eventually(async () => (await server.sql(`SELECT id FROM house WHERE name = '${name}'`)).length === 1);
      }
      await shot(page, 'calls');
      await to('#/village/tables/house');
      const grid = page.getByRole('table', { name: 'house' });
      const names = (): Promise<string[]> => grid.locator('.grid-row > :nth-child(2)').allInnerTexts();
      await eventually(async () => (await names()).join() === 'Oak,Ash,Elm');
      await grid.getByRole('button', { name: 'name' }).click();
      await eventually(async () => (await names()).join() === 'Ash,Elm,Oak');
      await page.getByLabel('WHERE').fill("name <> 'Elm'");
      await page.keyboard.press('Enter');
      await eventually(async () => (await names()).join() === 'Ash,Oak');
      await page.getByLabel('WHERE').fill('nothing = 1');
      await page.keyboard.press('Enter');
      await page.getByText('The filter is refused').waitFor();
      await page.getByRole('tab', { name: 'Schema' }).click();
      await page.getByText('primary key, counted up').waitFor();
      await to('#/village/tables/secret');
      await page.getByText('the treasure lies below the mill').waitFor();
      await to('#/arena/tables/character');
      await eventually(async () => (await page.locator('.grid-row').count()) > 10);
      await shot(page, 'tables');
      // Operators look on: they are no heroes.
      const identities = await page.locator('.grid-row > :nth-child(3)').allInnerTexts();
      expect(identities.filter((text) => text !== 'None')).toEqual([]);
    }));

  it('shows what it can at addresses that nobody has written', () =>
    looking(async ({ page, to }) => {
      await to('#/village/workflows/%E0%A4%A');
      await lines(page).first().waitFor();
      await to('#/village/workflows/99999999999999999999');
      await page.getByText('Workflow 99999999999999999999 cannot be shown').waitFor();
      await to('#/nowhere/workflows/1');
      await page.getByText('There is no database nowhere here').waitFor();
      expect(await page.locator('[data-testid=workflow]').count()).toBe(0);
      await to('#/village/workflows?order=toString');
      await lines(page).first().waitFor();
    }));

  it('asks for a token again once the server no longer takes the one that it has', async () => {
    const looker = await look(browser, server);
    await looker.page.route('**/metrics', (route) => route.fulfill({ status: 401, body: 'the token is from another server' }));
    await looker.page.getByText('the token is from another server').waitFor();
    await looker.page.unroute('**/metrics');
    await looker.page.reload();
    await looker.page.getByLabel('Token').waitFor();
    await looker.page.getByLabel('Token').fill('no töken');
    await button(looker.page, 'Sign in').click();
    await looker.page.getByText('This is no token').waitFor();
    await looker.close();
  });

  it('says that the answer of a call was lost with the connection', async () => {
    const looker = await look(browser, server, { stranger: true });
    let lose: (() => void) | null = null;
    let deaf = false;
    await looker.page.routeWebSocket(/subscribe/, (socket) => {
      const upstream = socket.connectToServer();
      lose = () => void socket.close({ code: 3000 });
      socket.onMessage((message) => deaf || upstream.send(message));
    });
    await looker.page.goto(`${server.uri}/console/#token=${server.token}`);
    await looker.page.reload(); // an address that differs behind the # alone opens no new page
    await looker.page.locator('[data-testid=link].is-live').waitFor();
    await looker.to('#/village/calls/knock');
    await field(looker.page, 'workflow_id').fill('1');
    deaf = true;
    await button(looker.page, 'Call').click();
    await button(looker.page, 'Calling').waitFor();
    lose!();
    await looker.page.getByText('The connection was lost before the answer came').waitFor();
    await button(looker.page, 'Call').waitFor();
    await looker.close();
  });

  it('shows the beginning of long lists and texts, and the rest when asked', async () => {
    const seeds = ['x'.repeat(5000), ...Array.from({ length: 499 }, (_one, at) => `seed ${at}`)];
    await server.call('workflow_start', 'bakery', { none: [] }, { none: [] }, JSON.stringify({ seeds }));
    await looking(async (looker) => {
      await openNewest(looker, 'bakery');
      const list = looker.page.locator('[data-testid=state] [data-name=seeds]');
      expect(await list.locator('li[data-name]').count()).toBe(200);
      await button(looker.page, '300 more').click();
      expect(await list.locator('li[data-name]').count()).toBe(500);
      await list.getByText(/^"x+…/).waitFor();
      await list.getByRole('button', { name: /^all 5.002 characters/ }).click();
      expect(await list.locator('[data-name="0"] .tree-value').innerText()).toBe(`"${seeds[0]}"`);
    });
    const [[id]] = (await server.sql('SELECT max(id) FROM workflow')) as [[number]];
    await server.call('workflow_cancel', id);
    await server.call('workflow_delete', id);
  });

  it('opens a row with keys alone', () =>
    looking(async ({ page, to }) => {
      await to('#/village/sql');
      await page.getByLabel('SQL').fill("SELECT 'first' AS place UNION ALL SELECT 'second'");
      await button(page, 'Run Ctrl ↵').click();
      await page.getByText('2 rows').waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      expect(await page.locator('dialog[open] dd').innerText()).toBe('second');
    }));

  it('shows big tables by pages', () =>
    looking(async ({ page, to }) => {
      await to('#/village/calls/harvest');
      await field(page, 'bags').fill('5000');
      await button(page, 'Call').click();
      await page.getByTestId('outcomes').getByText('It has committed').waitFor();
      await to('#/village/tables/grain');
      await page.getByText(/5.000 rows; those in sight/).waitFor();
      const list = page.getByRole('table', { name: 'grain' });
      await list.evaluate((node) => (node.scrollTop = node.scrollHeight));
      await eventually(async () => (await list.locator('.grid-row').last().innerText()).includes('4999'));
    }));

  it('answers SQL, and exports what it answered', () =>
    looking(async ({ page, to }) => {
      await to('#/village/sql');
      await page.getByLabel('SQL').fill('SELECT workflow_type, count(*) AS n FROM workflow GROUP BY 1 ORDER BY n DESC, 1');
      await page.keyboard.press('Control+Enter');
      const result = page.getByRole('table', { name: 'Result' });
      await eventually(async () => /stall\s*3/.test((await result.innerText()).replace(/\n/g, ' ')));
      const [csv] = await Promise.all([page.waitForEvent('download'), button(page, 'CSV').click()]);
      expect(readFileSync(await csv.path(), 'utf8').split('\r\n').slice(0, 2)).toEqual(['workflow_type,n', 'stall,3']);
      const [json] = await Promise.all([page.waitForEvent('download'), button(page, 'JSON').click()]);
      expect(JSON.parse(readFileSync(await json.path(), 'utf8'))[0]).toEqual({ workflow_type: 'stall', n: 3 });
      await shot(page, 'sql');
    }));

  it('says what is wrong with SQL', async () => {
    const looker = await look(browser, server);
    await looker.to('#/village/sql');
    await looker.page.getByLabel('SQL').fill('SELECT * FROM nowhere');
    await button(looker.page, 'Run Ctrl ↵').click();
    await looker.page.getByRole('alert').getByText(/nowhere/).waitFor();
    await looker.page.getByLabel('SQL').fill('DELETE FROM house');
    await looker.page.keyboard.press('Control+Enter');
    await looker.page.getByRole('alert').getByText(/read|SELECT|DELETE/i).waitFor();
    expect((await server.sql('SELECT count(*) FROM house'))[0]![0]).toBe(3);
    await looker.close();
  });

  it('follows the log, by level', () =>
    looking(async ({ page, to }) => {
      await to('#/village/logs');
      await page.getByRole('log').waitFor();
      const other = await look(browser, server);
      await other.to('#/village/calls/grumble');
      await button(other.page, 'Call').click();
      await other.page.getByTestId('outcomes').getByRole('alert').waitFor();
      await other.close();
      await page.getByRole('log').getByText('somebody grumbles').last().waitFor();
      await page.getByRole('group', { name: 'Level' }).getByText('Error').click();
      await eventually(async () => !(await page.getByRole('log').innerText()).includes('somebody grumbles'));
      await page.locator('.log-line', { hasText: 'grumble' }).last().click();
      await page.getByLabel('Entry').getByText('village.py').first().waitFor();
      await page.getByRole('group', { name: 'Level' }).getByText('Debug').click();
      await shot(page, 'logs');
    }));

  it('shows how the server is', () =>
    looking(async ({ page, to }) => {
      await to('#/arena/server');
      await page.getByTestId('health').getByText('Healthy').waitFor();
      for (const title of ['Transactions', 'Latency', 'Connections', 'Flush lag', 'Overdue timers', 'Memory']) {
        await page.locator(`[data-chart="${title}"]`).waitFor();
      }
      await eventually(async () => /\d+ MB/.test(await page.locator('[data-chart=Memory]').innerText()));
      await eventually(async () => /[1-9]/.test(await page.locator('[data-chart=Transactions] b').innerText()));
      await eventually(async () => ((await page.locator('[data-chart=Transactions] .chart-line').getAttribute('d')) ?? '').split('L').length > 3, 30_000);
      await shot(page, 'server');
      await to('#/arena/workflows');
      await eventually(async () => (await lines(page).count()) > 12);
      await shot(page, 'workflows');
    }));

  it('fits a phone', () =>
    looking(async ({ page, to }) => {
      for (const place of ['workflows', 'workflows/1', 'tables/house', 'sql', 'calls/build', 'server', 'logs']) {
        await to(`#/village/${place}`);
        await page.waitForTimeout(500);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
        if (place === 'workflows/1') await shot(page, 'phone');
      }
    }, PHONE));

  it('has a light face as well', () =>
    looking(async (looker) => {
      const { page } = looker;
      await looker.to('#/arena/workflows?type=patrol');
      await page.locator('.line').first().click();
      await page.getByTestId('workflow').waitFor();
      expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('light');
      await eventually(async () => (await page.locator('.code-line.is-here').count()) === 1);
      await page.locator('.timeline li').first().waitFor();
      await shot(page, 'light');
      await button(page, 'Dark or light').click();
      expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    }, { colorScheme: 'light' }));

  it('parks a workflow that fails, and resumes it once its code is mended, without a reload', async () => {
    const looker = await look(browser, server);
    const { page } = looker;
    await openNewest(looker, 'mill');
    await page.evaluate(() => Object.assign(window, { untouched: true }));
    await page.keyboard.press('s');
    await field(page, 'bags').fill('2');
    await button(page, 'Send Grind').click();
    await page.locator('[data-testid=workflow][data-status=Failed]').waitFor();
    await page.getByTestId('failure').getByText('ZeroDivisionError').first().waitFor();
    await page.locator('.code-line.is-failed').waitFor();
    await page.locator('.toast').waitFor({ state: 'detached' });
    await shot(page, 'failed');
    expect(looker.complaints).toEqual([]);

    server.edit('// init.stones', '// max(1, init.stones)');
    await server.stop();
    await page.getByTestId('lost').waitFor();
    expect(await page.getByTestId('workflow').innerText()).toContain('mill'); // what was seen stays in sight
    await server.start();
    await page.locator('[data-testid=link].is-live').waitFor({ timeout: 60_000 });
    await page.getByText('max(').waitFor(); // the new code is shown
    await button(page, 'Resume').click();
    await page.locator('[data-testid=workflow][data-status=Suspended]').waitFor();
    await eventually(async () => /ground\s*24/.test(await page.getByTestId('state').innerText()));
    expect(await page.evaluate(() => 'untouched' in window)).toBe(true);
    await looker.close();
  });

  it('shows of every event what Workflows(db).at has of it', async () => {
    const looker = await look(browser, server);
    const { page } = looker;
    const ids = (await server.sql('SELECT id FROM workflow ORDER BY id')).map(([id]) => String(id));
    const shown: Record<string, ShownMoment[]> = {};
    for (const id of ids) {
      await looker.to(`#/village/workflows/${id}`);
      await page.getByTestId('workflow').getByText(`#${id}`).first().waitFor();
      const events = page.locator('[data-testid=timeline] > li');
      await eventually(async () => String((await server.sql(`SELECT count(*) FROM workflow_event WHERE workflow_id = ${id}`))[0]![0]) === `${await events.count()}`);
      shown[id] = [];
      for (let at = (await events.count()) - 1; at >= 0; at -= 1) shown[id].push(await momentShown(page, events.nth(at)));
    }
    await looker.close();
    await server.stop();
    const told: Record<string, Moment[]> = JSON.parse(server.python('moments.py'));
    // Those since are of attempts that were made after we had looked.
    const seen = Object.entries(told).map(([id, moments]): [string, Moment[]] => [id, moments.slice(0, shown[id]!.length)]);
    expect(shown).toEqual(Object.fromEntries(seen.map(([id, moments]) => [id, moments.map(asShown)])));
    const kinds = seen.flatMap(([, moments]) => moments.map(({ kind }) => kind));
    expect(new Set(kinds)).toEqual(new Set(['started', 'step', 'failed', 'resumed', 'cancelled', 'attempt_failed']));
    expect(kinds.length).toBeGreaterThan(15);
  });
});
