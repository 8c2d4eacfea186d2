// The client's methods against a real server; the first test is the one that the whole package is for.
import {
  Disconnected,
  NotOpen,
  UnknownWorkflow,
  WorkflowCancelled,
  WorkflowClient,
  WorkflowFailed,
  workflowId,
} from 'gamedb-client';
import { expect, test } from 'vitest';
import { auction, fragile, hunter, nap, vault, type Workflows } from '../sdk/generated/ventures/workflows';
import { freePort } from '../sdk/server';
import { builder, connect, freshEntity, serve } from './support';

const served = serve();
const lot = { item: 'sword', price: 50 };

test('an auction in manual mode: two bids, the end, and who won', async () => {
  const { workflows } = await connect(served.server);
  const entityId = freshEntity();

  const wf = await workflows.startTest(auction, lot, { entityId });
  await workflows.debugSendSignal(wf.id, auction.signals.Bid, { bidder: 'alice', amount: 100 });
  await workflows.debugSendSignal(wf.id, auction.signals.Bid, { bidder: 'bob', amount: 150 });
  await workflows.debugFireTimer(wf.id, auction.timers.END);

  expect(await workflows.outcome(wf.id)).toEqual({ winner: 'bob', price: 150 });
  expect(await workflows.get(wf.id)).toMatchObject({ type: 'auction', status: 'Completed', entityId });
});

test('a signal is there for everyone: a bid of one client is in the view of another', async () => {
  const [ann, ben] = await Promise.all([connect(served.server), connect(served.server)]);
  const wf = await ann.workflows.start(auction, lot);
  const outbid = ben.workflows.waitFor(workflowId(auction, wf.id), ({ view }) => view.winner === 'ann');

  await ann.workflows.signal(wf.id, 'Bid', { bidder: 'ann', amount: 60 });

  expect((await outbid).view).toMatchObject({ winner: 'ann', price: 60, init: lot });
  expect(await ben.workflows.view(wf.id)).toEqual((await outbid).view);
});

test('a start with a correlation id that runs already joins that run', async () => {
  const { workflows } = await connect(served.server);
  const correlationId = `it's lot ${freshEntity()}`;
  const first = await workflows.startTest(auction, lot, { correlationId });

  expect(await workflows.startTest(auction, lot, { correlationId })).toEqual(first);
  expect((await workflows.start(auction, lot)).id).not.toBe(first.id);
});

test('whole numbers beyond 2^53 go in and come out as they are', async () => {
  const { workflows } = await connect(served.server);
  const amount = 2n ** 63n + 1n;
  const wf = await workflows.start(vault, { amount });

  await workflows.signal(wf.id, vault.signals.Add, { amount: 2 });

  expect(await workflows.view(wf.id)).toEqual({ init: { amount, owner: 'nobody' }, amount: amount + 2n });
  await workflows.signal(wf.id, vault.signals.Close);
  expect(await workflows.outcome(wf.id)).toBe(amount + 2n);
});

test('a failed workflow rejects with its error, and can be resumed', async () => {
  const { conn, workflows } = await connect(served.server);
  await conn.reducers.setSwitch({ isOn: false });
  const wf = await workflows.start(fragile);
  const outcome = workflows.outcome(wf.id);

  await workflows.signal(wf.id, 'Close');

  const error = await outcome.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WorkflowFailed);
  expect(error).toMatchObject({ workflowId: wf.id, workflowType: 'fragile' });
  expect((error as Error).message).toContain('RuntimeError: the switch is off');
  await conn.reducers.setSwitch({ isOn: true });
  await workflows.resume(wf.id);
  expect(await workflows.outcome(wf.id)).toBe('done');
});

test('a cancelled workflow rejects, and so does one that never was', async () => {
  const { workflows } = await connect(served.server);
  const wf = await workflows.start(auction, lot);
  const outcome = workflows.outcome(wf.id);
  const rejected = expect(outcome).rejects.toThrow(WorkflowCancelled);

  await workflows.cancel(wf.id);

  await rejected;
  await expect(workflows.outcome(987_654_321n)).rejects.toThrow(UnknownWorkflow);
});

test('a broadcast reaches those that subscribed with its key', async () => {
  const { workflows } = await connect(served.server);
  const wolf = await workflows.start(hunter, { prey: 'wolf' });
  const seven = await workflows.start(hunter, { prey: '7' });

  await workflows.broadcast('Killed', 'wolf', { how: 'with a bow' });
  await workflows.broadcast('Killed', 7n);

  expect(await workflows.outcome(wolf.id)).toBe('with a bow');
  expect(await workflows.outcome(seven.id)).toBe('somehow');
});

test('timers are told with what remains by the clock of the server', async () => {
  const { workflows } = await connect(served.server);
  const wf = await workflows.startTest(auction, lot);

  const [timer, ...others] = await workflows.timers(wf.id);

  expect(others).toEqual([]);
  expect(timer?.name).toBe('end');
  const { createdAt } = await workflows.get(wf.id);
  expect(timer?.dueAt.getTime()).toBe(Number(createdAt.microsSinceUnixEpoch / 1000n) + 60_000);
  expect(timer?.remaining).toBeGreaterThan(0);
  expect(timer?.remaining).toBeLessThanOrEqual(60_000);
});

test('a timer that nobody fires by hand fires by itself', async () => {
  const { workflows } = await connect(served.server);
  const wf = await workflows.start(nap, 'PT0.05S');
  expect(await workflows.outcome(wf.id)).toBe(1);
});

test('a watch follows the workflows of an entity, a type or a correlation id', async () => {
  const [ann, ben] = await Promise.all([connect(served.server), connect(served.server)]);
  const entityId = freshEntity();
  const watch = ben.workflows.watch({ entityId, type: 'vault' });
  await watch.ready;
  expect(watch.snapshot()).toEqual({ items: [], isReady: true, error: undefined });
  const seen = async (test: () => boolean) => {
    while (!test()) {
      await new Promise<void>((resolve) => {
        const forget = watch.subscribe(() => (forget(), resolve()));
      });
    }
  };

  const one = await ann.workflows.start(vault, { amount: 1 }, { entityId });
  await ann.workflows.startTest(auction, lot, { entityId });
  const two = await ann.workflows.start(vault, { amount: 2 }, { entityId });
  await seen(() => watch.items.length === 2);
  expect(watch.items.map((run) => run.id)).toEqual([one.id, two.id]);

  await ann.workflows.signal(one.id, 'Add', { amount: 5 });
  await seen(() => watch.items[0]?.view.amount === 6);
  expect(watch.items).toBe(watch.items);
  watch.close();
  expect(ben.conn.db.workflow.count()).toBeLessThanOrEqual(2n);
  await ann.workflows.signal(one.id, 'Close');
  await ben.workflows.outcome(one.id);
  expect(watch.items[0]?.status).toBe('Suspended');

  const found = ben.workflows.watch({ correlationId: two.correlationId });
  await found.ready;
  expect(found.items.map((run) => run.id)).toEqual([two.id]);
  found.close();
});

test('what nobody looks at any more is not kept', async () => {
  const { conn, workflows } = await connect(served.server);
  const wf = await workflows.startTest(auction, lot);
  const watches = [workflows.watch({ id: wf.id }), workflows.watch({ id: wf.id })];
  await watches[0]?.ready;
  watches[0]?.close();
  await workflows.debugSendSignal(wf.id, 'Bid', { bidder: 'kim', amount: 90 });
  expect(watches[1]?.items[0]).toMatchObject({ view: { winner: 'kim' } });

  watches[1]?.close();
  await workflows.cancel(wf.id); // a round trip

  expect(conn.db.workflow.count()).toBe(0n);
});

test("the server's refusals reach the caller word by word", async () => {
  const { workflows } = await connect(served.server);
  const wf = await workflows.startTest(auction, lot);

  await expect(workflows.start(auction, { item: 'x' } as never)).rejects.toThrow(/the init of auction does not fit/);
  await expect(workflows.start({ type: 'action' } as never, null as never)).rejects.toThrow(
    "no workflow 'action' is installed; there are: auction",
  );
  await expect(workflows.signal(wf.id, 'Close' as never, {} as never)).rejects.toThrow(/Close/);
  await expect(workflows.debugFireTimer(wf.id, 'end ' as never)).rejects.toThrow(
    `workflow ${wf.id} (auction) does not wait for timer 'end '; it waits for: end`,
  );
  await expect(workflows.resume(wf.id)).rejects.toThrow(/has not failed: it is Suspended/);
  await workflows.debugFireTimer(wf.id, 'end');
  await expect(workflows.signal(wf.id, 'Bid', { bidder: 'late', amount: 1 })).rejects.toThrow(`workflow ${wf.id}`);
});

test('what the bindings do not have says how to open it', async () => {
  const { conn } = await connect(served.server);
  const closed = new WorkflowClient({ ...conn, subscriptionBuilder: conn.subscriptionBuilder, reducers: {} });

  await expect(closed.cancel(1n)).rejects.toThrow('access=["workflow_cancel"]');
  await expect(closed.debugFireTimer(1n, 'end')).rejects.toThrow('testing=True, access=["debug_fire_timer"]');
  await expect(closed.start(auction, lot)).rejects.toThrow(NotOpen);
});

test('waiting ends when the caller has enough of it, or when the predicate throws', async () => {
  const { workflows } = await connect(served.server);
  const wf = await workflows.startTest(auction, lot);
  const enough = new AbortController();
  const outcome = workflows.outcome(wf.id, { abort: enough.signal });
  enough.abort(new Error('enough'));

  await expect(outcome).rejects.toThrow('enough');
  await expect(workflows.outcome(wf.id, { abort: enough.signal })).rejects.toThrow('enough');
  const broken = workflows.waitFor(wf.id, ({ step }) => {
    throw new Error(`what is ${step === '' ? 'this' : 'that'}?`);
  });
  await expect(broken).rejects.toThrow('what is that?');
});

test('many at once each get what is theirs', async () => {
  const { workflows } = await connect(served.server);
  const amounts = Array.from({ length: 50 }, (_, index) => index + 1);

  const started = await Promise.all(amounts.map((amount) => workflows.start(vault, { amount })));
  const outcomes = Promise.all(started.map(({ id }) => workflows.outcome(id)));
  await Promise.all(started.map(({ id }) => workflows.signal(id, 'Close')));

  expect(await outcomes).toEqual(amounts);
});

test('a client can be made, and used, before the connection is ready', async () => {
  const conn = builder(served.server).build();
  const workflows = new WorkflowClient<Workflows>(conn);
  const wf = await workflows.startTest(auction, lot);
  expect(await workflows.view(wf.id)).toMatchObject({ price: 50 });

  conn.disconnect();
  await expect(workflows.outcome(wf.id)).rejects.toThrow(Disconnected);
  await expect(new WorkflowClient(conn).get(wf.id)).rejects.toThrow(Disconnected);
});

test('a connection that does not come about rejects, too', async () => {
  const nobody = `http://127.0.0.1:${await freePort()}`;
  const conn = builder(served.server).withUri(nobody).build();
  await expect(new WorkflowClient<Workflows>(conn).start(auction, lot)).rejects.toThrow(Disconnected);
});

test('a connection that ends rejects what is pending, and what comes after', async () => {
  const { conn, workflows, closed } = await connect(served.server);
  const wf = await workflows.startTest(auction, lot);
  const watch = workflows.watch({ id: wf.id });
  await watch.ready;
  const pending = [workflows.outcome(wf.id), workflows.waitFor(wf.id, () => false)].map((promise) =>
    promise.catch((error: unknown) => error),
  );

  conn.disconnect();
  await closed;

  for (const error of await Promise.all(pending)) {
    expect(error).toBeInstanceOf(Disconnected);
  }
  await expect(workflows.signal(wf.id, 'Bid', { bidder: 'ann', amount: 1 })).rejects.toThrow(
    'the connection to the game has ended',
  );
  await expect(workflows.start(auction, lot)).rejects.toThrow(Disconnected);
  await expect(workflows.timers(wf.id)).rejects.toThrow(Disconnected);
  expect(watch.snapshot()).toMatchObject({ isReady: false, items: [{ id: wf.id }] });
});
