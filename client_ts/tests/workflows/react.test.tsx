// @vitest-environment happy-dom
// The hooks on a page, over a crash of the server.
import { workflowId } from 'gamedb-client';
import { workflowHooks } from 'gamedb-client/react';
import { StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { SpacetimeDBProvider } from 'spacetimedb/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { auction, type Workflows } from '../sdk/generated/ventures/workflows';
import { builder, connect, freshEntity, serve } from './support';

const served = serve();
const { useTimer, useWorkflow, useWorkflowClient, useWorkflows } = workflowHooks<Workflows>();

let root: Root;
let page: HTMLElement;

beforeEach(() => {
  page = document.createElement('div');
  root = createRoot(page);
});

afterEach(() => root.unmount());

async function shows(text: string): Promise<void> {
  await vi.waitFor(() => expect(page.textContent).toContain(text), 30_000);
}

function Lot({ id }: { id: bigint | undefined }) {
  const lotId = id === undefined ? undefined : workflowId(auction, id);
  const [lot, isReady] = useWorkflow(lotId);
  const timer = useTimer(lotId, 'end', { everyMs: 20 });
  const left = timer === undefined ? 'no end' : timer.remaining <= 60_000 ? `${timer.name} soon` : 'too long';
  return (
    <p>
      {lot === undefined ? 'none' : `${lot.view.winner} ${lot.view.price} ${lot.status}`}, {left}, {isReady ? 'live' : 'old'}
    </p>
  );
}

function Lots({ entityId }: { entityId: bigint }) {
  const [lots, isReady] = useWorkflows({ entityId, type: 'auction' });
  const client = useWorkflowClient();
  return (
    <>
      {isReady ? `${lots.length} lots; ` : 'loading; '}
      {client === undefined ? 'away; ' : 'here; '}
    </>
  );
}

let connectionBuilder: ReturnType<typeof builder>;

function show(id: bigint | undefined, entityId: bigint): void {
  root.render(
    <StrictMode>
      <SpacetimeDBProvider connectionBuilder={connectionBuilder}>
        <Lots entityId={entityId} />
        <Lot id={id} />
      </SpacetimeDBProvider>
    </StrictMode>,
  );
}

test('a workflow is shown and followed, and again after a crash of the server', async () => {
  connectionBuilder = builder(served.server);
  const entityId = freshEntity();
  const first = await connect(served.server);
  show(undefined, entityId);
  await shows('0 lots; here; none, no end, old');

  const one = await first.workflows.startTest(auction, { item: 'sword', price: 5 }, { entityId });
  show(one.id, entityId);
  await shows('1 lots; here; null 5 Suspended, end soon, live');
  await first.workflows.debugSendSignal(one.id, 'Bid', { bidder: 'ann', amount: 7 });
  await shows('1 lots; here; ann 7 Suspended, end soon, live');

  await served.server.stop('SIGKILL');
  await shows('loading; away; ann 7 Suspended, end soon, old');
  await served.server.start();
  window.dispatchEvent(new Event('online')); // the provider need not wait out its delay
  await shows('1 lots; here; ann 7 Suspended, end soon, live');

  const second = await connect(served.server);
  await second.workflows.debugSendSignal(one.id, 'Bid', { bidder: 'ben', amount: 8 });
  await second.workflows.debugFireTimer(one.id, 'end');
  await shows('1 lots; here; ben 8 Completed, no end, live');

  const two = await second.workflows.startTest(auction, { item: 'bow', price: 3 }, { entityId });
  await shows('2 lots; ');
  show(two.id, entityId);
  await shows('2 lots; here; null 3 Suspended, end soon, live');
});
