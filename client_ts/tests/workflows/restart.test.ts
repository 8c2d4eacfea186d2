// A server that is killed in the middle of a workflow: its clients hear of it, and the workflow goes on.
import { Disconnected } from 'gamedb-client';
import { expect, test } from 'vitest';
import { auction } from '../sdk/generated/ventures/workflows';
import { connect, serve } from './support';

const served = serve();

test('after kill -9 an auction goes on with its bids and its deadline', async () => {
  const first = await connect(served.server);
  const wf = await first.workflows.startTest(auction, { item: 'sword', price: 50 });
  await first.workflows.debugSendSignal(wf.id, 'Bid', { bidder: 'alice', amount: 100 });
  const view = await first.workflows.view(wf.id);
  const [timer] = await first.workflows.timers(wf.id);
  const outcome = first.workflows.outcome(wf.id).catch((error: unknown) => error);

  await served.server.stop('SIGKILL');
  expect(await outcome).toBeInstanceOf(Disconnected);
  await first.closed;
  await served.server.start();

  const { workflows } = await connect(served.server);
  expect(await workflows.view(wf.id)).toEqual(view);
  expect((await workflows.timers(wf.id)).map(({ name, dueAt }) => ({ name, dueAt }))).toEqual([
    { name: 'end', dueAt: timer?.dueAt },
  ]);
  await workflows.debugSendSignal(wf.id, 'Bid', { bidder: 'bob', amount: 150 });
  await workflows.debugFireTimer(wf.id, 'end');
  expect(await workflows.outcome(wf.id)).toEqual({ winner: 'bob', price: 150 });
});
