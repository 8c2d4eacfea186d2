// What does not fit does not compile: each `@ts-expect-error` is a mistake that the compiler finds.
import {
  workflowId,
  WorkflowClient,
  type WorkflowConnection,
  type WorkflowId,
  type WorkflowRun,
} from 'gamedb-client';
import { workflowHooks, type WorkflowHooks } from 'gamedb-client/react';
import { expect, expectTypeOf, test } from 'vitest';
import type { DbConnection as ClosedConnection } from '../sdk/generated/auction';
import type { DbConnection } from '../sdk/generated/ventures';
import {
  auction,
  fragile,
  nap,
  vault,
  type AuctionResult,
  type AuctionView,
  type Big,
  type Workflows,
} from '../sdk/generated/ventures/workflows';

declare const client: WorkflowClient<Workflows>;
declare const id: WorkflowId<'auction'>;
declare const run: WorkflowRun<Workflows>;
declare const plain: bigint;

test('the bindings of any game with workflows will do, whatever it opens', () => {
  expectTypeOf<DbConnection>().toExtend<WorkflowConnection>();
  expectTypeOf<ClosedConnection>().toExtend<WorkflowConnection>();
  expectTypeOf<(typeof client)['connection']>().toEqualTypeOf<WorkflowConnection>();
});

test('ids know what they are of', () => {
  expectTypeOf(workflowId(auction, 7n)).toEqualTypeOf<WorkflowId<'auction'>>();
  expect(workflowId(auction, 7n)).toBe(7n);
});

// Never called: the compiler is the test.
export async function compiles(): Promise<void> {
  const started = await client.start(auction, { item: 'sword', price: 1 }, { entityId: 1n });
  expectTypeOf(started.id).toEqualTypeOf<WorkflowId<'auction'>>();
  expectTypeOf(await client.outcome(started.id)).toEqualTypeOf<AuctionResult>();
  expectTypeOf(await client.outcome(workflowId(vault, plain))).toEqualTypeOf<Big>();
  expectTypeOf(await client.view(id)).toEqualTypeOf<AuctionView>();
  await client.waitFor(id, ({ view }) => view.winner === 'ann');
  await client.start(fragile);
  await client.start(fragile, null, { correlationId: 'once' });
  await client.signal(plain, 'Close');
  await client.startTest(nap, 'PT60S');
  await client.debugFireTimer(workflowId(nap, plain), 'sleep');
  await client.broadcast('Killed', 7);
  for (const timer of await client.timers(workflowId(nap, plain))) {
    expectTypeOf(timer.name).toEqualTypeOf<'sleep' | `timeout(${string})`>();
  }
  expectTypeOf(client.watch({ type: 'vault' }).items[0]?.view.amount).toEqualTypeOf<Big | undefined>();
  if (run.type === 'auction') {
    expectTypeOf(run.view).toEqualTypeOf<AuctionView>();
  }
  await new WorkflowClient(client.connection).signal(plain, 'Anything', { goes: true });
}

export async function doesNotCompile(): Promise<void> {
  // @ts-expect-error -- a misspelt workflow
  await client.start({ type: 'action' }, { item: 'sword', price: 1 });
  // @ts-expect-error -- an init that may not be left out
  await client.start(auction);
  // @ts-expect-error -- an init with a wrong field
  await client.start(auction, { item: 'sword', prize: 1 });
  // @ts-expect-error -- the init of another workflow
  await client.start(auction, { amount: 1n });
  // @ts-expect-error -- an entity is a bigint
  await client.startTest(auction, { item: 'sword', price: 1 }, { entityId: 1 });
  // @ts-expect-error -- a misspelt signal
  await client.signal(id, 'Bit', { bidder: 'ann', amount: 1 });
  // @ts-expect-error -- a signal of another workflow
  await client.signal(id, vault.signals.Close);
  // @ts-expect-error -- a payload with a wrong type
  await client.signal(id, 'Bid', { bidder: 'ann', amount: '1' });
  // @ts-expect-error -- a payload that lacks a field
  await client.debugSendSignal(id, auction.signals.Bid, { bidder: 'ann' });
  // @ts-expect-error -- a payload that may not be left out
  await client.debugSendSignal(id, auction.signals.Bid);
  // @ts-expect-error -- a timer that there is not
  await client.debugFireTimer(id, 'ent');
  // @ts-expect-error -- a variable that the view has not
  await client.waitFor(id, ({ view }) => view.leader === 'ann');
  // @ts-expect-error -- a result of another type
  const outcome: string = await client.outcome(id);
  // @ts-expect-error -- a type that there is not
  client.watch({ type: 'action' });
  // @ts-expect-error -- an id is a bigint
  await client.cancel(7);
  // @ts-expect-error -- a signal that nobody knows
  await client.broadcast('Kill', 'wolf');
  void outcome;
}

test('hooks are typed by the game', () => {
  const hooks = workflowHooks<Workflows>();
  expectTypeOf(hooks).toEqualTypeOf<WorkflowHooks<Workflows>>();
  expectTypeOf(hooks.useWorkflow<WorkflowId<'auction'>>).returns.toEqualTypeOf<
    readonly [WorkflowRun<Workflows, 'auction'> | undefined, boolean]
  >();
});
