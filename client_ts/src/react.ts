/**
 * React hooks: workflows and their timers under the SDK's `SpacetimeDBProvider`, over its reconnections. While the
 * connection is gone they show what they knew last.
 *
 * @packageDocumentation
 */
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { useSpacetimeDB } from 'spacetimedb/react';
import type { WorkflowConnection } from './bindings.js';
import { WorkflowClient } from './client.js';
import type { ServerClock } from './clock.js';
import type { WorkflowFilter } from './queries.js';
import type { WorkflowRun, WorkflowTimer } from './run.js';
import type { AnyWorkflows, KindOf, NameIn, TimerOf, WorkflowsShape } from './typing.js';
import type { Watch, WatchSnapshot } from './watch.js';

/** How a timer is shown. */
export interface TimerOptions {
  /** How often the remaining time is told anew, in milliseconds; 250 by default. */
  everyMs?: number | undefined;
}

/** The hooks with the types of a game: what `workflowHooks<Workflows>()` gives. */
export interface WorkflowHooks<W extends WorkflowsShape<W>> {
  /** The client of the connection; `undefined` while there is none. */
  useWorkflowClient(): WorkflowClient<W> | undefined;
  /** A workflow, and whether that is how it is now. `undefined`: it is not known (yet), or the id is `undefined`. */
  useWorkflow<I extends bigint>(id: I | undefined): readonly [WorkflowRun<W, KindOf<W, I>> | undefined, boolean];
  /** The workflows of a filter by id, and whether these are all. */
  useWorkflows<K extends NameIn<W> = NameIn<W>>(
    filter: WorkflowFilter<K>,
  ): readonly [readonly WorkflowRun<W, K>[], boolean];
  /** A timer with the time that remains, counting down; `undefined` when the workflow does not wait for it, or nothing is known yet. */
  useTimer<I extends bigint, T extends TimerOf<W, KindOf<W, I>>>(
    id: I | undefined,
    name: T,
    options?: TimerOptions,
  ): WorkflowTimer<T> | undefined;
}

/** How often the server's clock is asked for: computers sleep, and clocks drift. */
const AGAIN_MS = 60_000;
const NOTHING: WatchSnapshot<never> = { items: [], isReady: false, error: undefined };

/** The client of the connection; `undefined` while there is none. */
export function useWorkflowClient<W extends WorkflowsShape<W> = AnyWorkflows>(): WorkflowClient<W> | undefined {
  const { getConnection, isActive } = useSpacetimeDB();
  const connection = isActive ? (getConnection() as WorkflowConnection | null) : null;
  return useMemo(() => (connection === null ? undefined : new WorkflowClient<W>(connection)), [connection]);
}

/** What a hook shows: a watch, and what was seen last. */
interface Held<Item> {
  watch?: Watch<Item>;
  seen: WatchSnapshot<Item>;
}

/** The watch, but while it is not ready what was seen before. The same object until something changes. */
function current<Item>(held: Held<Item>): WatchSnapshot<Item> {
  const snapshot = held.watch?.snapshot();
  if (snapshot !== undefined && (snapshot.isReady || snapshot.error !== undefined)) {
    held.seen = snapshot;
  } else if (held.seen.isReady) {
    held.seen = { ...held.seen, isReady: false };
  }
  return held.seen;
}

/** Follows a watch, over changes of the client. `key` says what is watched: another one begins with nothing. */
function useWatch<Item>(
  client: WorkflowClient | undefined,
  key: string,
  open: ((client: WorkflowClient) => Watch<Item>) | undefined,
): WatchSnapshot<Item> {
  const [kept, keep] = useState<{ key: string; held: Held<Item> }>(() => ({ key, held: { seen: NOTHING } }));
  let held = kept.held;
  if (kept.key !== key) {
    held = { seen: NOTHING };
    keep({ key, held });
  }
  const subscribe = useCallback(
    (changed: () => void) => {
      if (client === undefined || open === undefined) {
        return () => undefined;
      }
      const watch = open(client);
      held.watch = watch;
      const forget = watch.subscribe(changed);
      return () => {
        current(held);
        delete held.watch;
        forget();
        watch.close();
      };
    },
    // `open` is made anew by each rendering; what it opens is what `key` says.
    [client, held],
  );
  const snapshot = useSyncExternalStore(
    subscribe,
    () => current(held),
    () => NOTHING,
  );
  if (snapshot.error !== undefined) {
    throw snapshot.error;
  }
  return snapshot;
}

/** A workflow, and whether that is how it is now. `undefined`: it is not known (yet), or the id is `undefined`. */
export function useWorkflow<W extends WorkflowsShape<W> = AnyWorkflows, I extends bigint = bigint>(
  id: I | undefined,
): readonly [WorkflowRun<W, KindOf<W, I>> | undefined, boolean] {
  const client = useWorkflowClient();
  const { items, isReady } = useWatch(client, `${id}`, id === undefined ? undefined : (c) => c.watch({ id }));
  return [items[0] as WorkflowRun<W, KindOf<W, I>> | undefined, isReady];
}

/** The workflows of a filter by id, and whether these are all. */
export function useWorkflows<W extends WorkflowsShape<W> = AnyWorkflows, K extends NameIn<W> = NameIn<W>>(
  filter: WorkflowFilter<K>,
): readonly [readonly WorkflowRun<W, K>[], boolean] {
  const { id, entityId, type, correlationId, parentId } = filter;
  const client = useWorkflowClient();
  const key = [id, entityId, type, correlationId, parentId].map((part) => encodeURIComponent(`${part}`)).join(' ');
  const { items, isReady } = useWatch(client, key, (c) => c.watch(filter));
  return [items as unknown as readonly WorkflowRun<W, K>[], isReady];
}

/** A timer with the time that remains, counting down; `undefined` when the workflow does not wait for it, or nothing is known yet. */
export function useTimer<
  W extends WorkflowsShape<W> = AnyWorkflows,
  I extends bigint = bigint,
  T extends TimerOf<W, KindOf<W, I>> = TimerOf<W, KindOf<W, I>>,
>(id: I | undefined, name: T, { everyMs = 250 }: TimerOptions = {}): WorkflowTimer<T> | undefined {
  const client = useWorkflowClient();
  const clock = useClock(client);
  const { items } = useWatch(client, `${id}`, id === undefined ? undefined : (c) => c.watchTimers(id));
  const timer = items.find((item) => (item.name as string) === name);
  const [, tick] = useState(0);
  const isRunning = timer !== undefined && clock !== undefined;
  useEffect(() => {
    if (!isRunning) {
      return;
    }
    const interval = setInterval(() => tick((ticks) => ticks + 1), everyMs);
    return () => clearInterval(interval);
  }, [isRunning, everyMs]);
  if (timer === undefined || clock === undefined) {
    return undefined;
  }
  return { ...timer, name, remaining: Math.max(0, timer.dueAt.getTime() - clock.now()) };
}

/** The server's clock, once it is known. While there is no connection, the one of the last. */
function useClock(client: WorkflowClient | undefined): ServerClock | undefined {
  const [clock, setClock] = useState<ServerClock>();
  useEffect(() => {
    let isMounted = true;
    const synchronise = () => {
      client?.clock.synchronise().then(
        () => isMounted && setClock(client.clock),
        () => undefined, // the connection has ended; the next one has a clock, too
      );
    };
    synchronise();
    const interval = setInterval(synchronise, AGAIN_MS);
    return () => {
      isMounted = false;
      clearInterval(interval);
    };
  }, [client]);
  return clock;
}

/** The hooks, with the types of a game: `export const { useWorkflow, useTimer } = workflowHooks<Workflows>();` */
export function workflowHooks<W extends WorkflowsShape<W>>(): WorkflowHooks<W> {
  return { useWorkflowClient, useWorkflow, useWorkflows, useTimer } as WorkflowHooks<W>;
}
