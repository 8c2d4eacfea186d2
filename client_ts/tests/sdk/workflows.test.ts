// Workflows as a page meets them: started, signalled and watched over the wire, with the names and types of workflows.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import { DbConnection, tables } from './generated/flows';
import { lot, type LotInit, type LotResult, type LotView, type Workflows } from './generated/flows/workflows';
import { GameServer } from './server';

const directory = mkdtempSync(path.join(tmpdir(), 'gamedb-flows-'));
let server: GameServer;
let conn: DbConnection;

beforeAll(async () => {
  server = new GameServer(directory, ['tests.sdk_game.flows:module']);
  await server.start();
  conn = await new Promise((resolve, reject) => {
    DbConnection.builder()
      .withUri(server.uri)
      .withDatabaseName('flows')
      .onConnect((connected) => resolve(connected))
      .onConnectError((_ctx, error) => reject(error))
      .build();
  });
  await new Promise<void>((resolve) => {
    conn
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .subscribe([tables.workflow, tables.workflowTimer, tables.workflowSignal, tables.workflowEvent]);
  });
});

afterAll(async () => {
  conn.disconnect();
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(init: LotInit, reducer: 'workflowStart' | 'workflowStartTest'): Promise<bigint> {
  const correlationId = `${init.item}-${Math.random()}`;
  await conn.reducers[reducer]({
    workflowType: lot.type,
    entityId: 7n,
    correlationId,
    init: JSON.stringify(init),
  });
  const row = [...conn.db.workflow.iter()].find((w) => w.correlationId === correlationId);
  return row?.id ?? 0n;
}

const view = (id: bigint) =>
  JSON.parse(new TextDecoder().decode(conn.db.workflow.id.find(id)?.stateData)) as LotView;

test('one is started, gets signals, and ends when its timer is fired by hand', async () => {
  const id = await start({ item: 'sword', price: 5 }, 'workflowStartTest');
  expect(conn.db.workflow.id.find(id)).toMatchObject({ status: { tag: 'Suspended' }, entityId: 7n, testMode: true });
  expect(view(id)).toMatchObject({ init: { item: 'sword', price: 5 }, winner: null, price: 5 });

  const bid: Workflows['lot']['signals']['Bid'] = { bidder: 'ann', amount: 9 };
  await conn.reducers.debugSendSignal({ workflowId: id, signal: lot.signals.Bid, payload: JSON.stringify(bid) });
  expect(view(id)).toMatchObject({ winner: 'ann', price: 9 });
  await conn.reducers.debugFireTimer({ workflowId: id, timerName: lot.timers.END });

  const row = conn.db.workflow.id.find(id);
  expect(row?.status.tag).toBe('Completed');
  expect(JSON.parse(row?.result ?? '') as LotResult).toEqual({ winner: 'ann', price: 9 });
  expect([...conn.db.workflowEvent.iter()].filter((e) => e.workflowId === id).map((e) => e.kind)).toContain('completed');
});

test('one ends by itself when its time has come', async () => {
  const ended = new Promise<string>((resolve) => {
    conn.db.workflow.onUpdate((_ctx, _before, row) => {
      if (row.status.tag === 'Completed') {
        resolve(row.result ?? '');
      }
    });
  });

  await start({ item: 'shield', runs: 'PT0.05S' }, 'workflowStart');

  expect(JSON.parse(await ended)).toEqual({ winner: null, price: 0 });
});

test('a payload that does not fit is refused, and the workflow is as it was', async () => {
  const id = await start({ item: 'ring' }, 'workflowStartTest');
  const before = view(id);

  await expect(
    conn.reducers.workflowSignal({ workflowId: id, signal: lot.signals.Bid, payload: '{"bidder": 5}' }),
  ).rejects.toThrow(/bidder/);
  await expect(conn.reducers.workflowSignal({ workflowId: id, signal: 'Bit', payload: '{}' })).rejects.toThrow(/Bit/);

  expect(view(id)).toEqual(before);
  await conn.reducers.workflowCancel({ workflowId: id });
  expect(conn.db.workflow.id.find(id)?.status.tag).toBe('Cancelled');
});

test('types describe the JSON of init, payloads and state', () => {
  expectTypeOf<Workflows[typeof lot.type]['view']>().toEqualTypeOf<LotView>();
  expectTypeOf<Workflows['lot']['timers']>().toEqualTypeOf<'end'>();
  expectTypeOf<Workflows['lot']['signals']['Bid']>().toEqualTypeOf<{ bidder: string; amount: number }>();
  expectTypeOf<LotInit>().toEqualTypeOf<{ item: string; price?: number; runs?: string }>();
  expectTypeOf<LotView['winner']>().toEqualTypeOf<string | null>();
});
