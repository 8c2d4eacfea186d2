// @vitest-environment happy-dom
// The React hooks of the SDK, on a page of its own.
import { act, StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { SpacetimeDBProvider, useProcedure, useReducer, useSpacetimeDB, useTable } from 'spacetimedb/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { procedures, reducers, tables } from './generated/game';
import { builder, connect, fresh, freshNumber } from './support';

let root: Root;
let page: HTMLElement;

beforeEach(() => {
  (globalThis as Record<string, unknown>)['IS_REACT_ACT_ENVIRONMENT'] = true;
  page = document.createElement('div');
  root = createRoot(page);
});

afterEach(async () => {
  await act(async () => root.unmount());
});

async function shows(text: string): Promise<void> {
  await vi.waitFor(async () => {
    await act(async () => undefined);
    expect(page.textContent).toBe(text);
  }, 5_000);
}

function Team({ id }: { id: number }) {
  const [players, ready] = useTable(tables.player.where((p) => p.teamId.eq(id)));
  const heroes = [...players].sort((a, b) => a.hp - b.hp).map((p) => p.hp);
  return <p>{ready ? heroes.join(',') : 'loading'};</p>;
}

let calls: { add: (name: string) => Promise<void>; sum: () => Promise<bigint> };

function Game({ teamId }: { teamId: number }) {
  const { isActive } = useSpacetimeDB();
  const addPlayer = useReducer(reducers.addPlayer);
  const add = useProcedure(procedures.add);
  calls = { add: (name) => addPlayer({ name, teamId, hp: 7 }), sum: () => add({ a: 2, b: 3 }) };
  return isActive ? (
    <>
      <Team id={teamId} />
      <Team id={teamId} />
    </>
  ) : null;
}

test('tables are shown and followed, by two components with the same query', async () => {
  const teamId = freshNumber();
  const [one, two] = [fresh('react'), fresh('react')];
  const other = await connect();
  await other.conn.reducers.addPlayer({ name: one, teamId, hp: 1 });

  await act(async () =>
    root.render(
      <StrictMode>
        <SpacetimeDBProvider connectionBuilder={builder()}>
          <Game teamId={teamId} />
        </SpacetimeDBProvider>
      </StrictMode>,
    ),
  );

  await shows('1;1;');
  await act(async () => calls.add(two));
  await shows('1,7;1,7;');
  await other.conn.reducers.setHp({ name: one, hp: 9 });
  await shows('7,9;7,9;');
  await other.conn.reducers.removePlayer({ name: two });
  await shows('9;9;');
  expect(await calls.sum()).toBe(5n);
});
