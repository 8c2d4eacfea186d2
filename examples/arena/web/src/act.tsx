// What the player does. Some things need to be near: then the page walks there first, and goes on doing them.

import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useSpacetimeDB } from 'spacetimedb/react';
import type { DbConnection } from './bindings';
import { serverNow } from './clock';
import { useToast } from './toasts';
import { apart, ms, raidTarget, spotOf, useWorld, type Spot, type World } from './world';

const REACH = 95; // a little less than the server's, which measures at another moment
const PASSING = /there is no character|has fallen already|is immune|sleeps;|catching your breath/; // a moment too late
const SHORT = 62; // how far from a goal one stops
const LOOK_MS = 200;

export type Intent =
  | { kind: 'attack'; target: bigint }
  | { kind: 'raid' }
  | { kind: 'pick'; item: bigint }
  | { kind: 'quest'; giver: bigint };

type Reducers = DbConnection['reducers'];

export interface Actions {
  intent: Intent | null;
  /** Call a reducer; its refusal becomes a message. */
  call: (what: (reducers: Reducers) => Promise<void>, passing?: RegExp) => Promise<boolean>;
  /** Walk somewhere; what was intended is forgotten. */
  walk: (to: Spot) => void;
  /** Do this as soon as it is near enough, and walk there until then. */
  intend: (intent: Intent | null) => void;
}

const Context = createContext<Actions | null>(null);

export function useActions(): Actions {
  const actions = useContext(Context);
  if (actions === null) throw new Error('useActions is for what is inside of <ActionsProvider>');
  return actions;
}

export function ActionsProvider({ children }: { children: ReactNode }) {
  const { getConnection } = useSpacetimeDB();
  const toast = useToast();
  const world = useWorld();
  const seen = useRef<World>(world);
  const [intent, setIntent] = useState<Intent | null>(null);
  useEffect(() => {
    seen.current = world;
  }, [world]);

  const call = useCallback<Actions['call']>(
    async (what, passing) => {
      const connection = getConnection() as DbConnection | null;
      if (connection === null || !seen.current.live) {
        toast('error', 'Not connected: wait a moment.');
        return false;
      }
      try {
        await what(connection.reducers);
        return true;
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        if (passing?.test(text)) return true;
        toast('error', sentence(text));
        return false;
      }
    },
    [getConnection, toast],
  );

  const walk = useCallback<Actions['walk']>(
    (to) => {
      setIntent(null);
      void call((reducers) => reducers.move({ x: Math.round(to.x), y: Math.round(to.y) }));
    },
    [call],
  );

  useEffect(() => {
    if (intent === null) return;
    let busy = false;
    let walkedTo: Spot | null = null;
    const timer = setInterval(() => {
      const now = serverNow();
      const state = seen.current;
      const target = state.live ? spotOfIntent(state, intent, now) : null;
      if (busy || state.me === undefined || !state.live) return;
      if (target === null || state.me.hp === 0) {
        setIntent(null);
        return;
      }
      if (apart(spotOf(state, state.me, now), target) > REACH) {
        if (walkedTo === null || apart(walkedTo, target) > 40 || !state.walks.has(state.me.id)) {
          walkedTo = target;
          busy = true;
          const beside = shortOf(target, spotOf(state, state.me, now));
          void call((reducers) => reducers.move(beside)).then((done) => {
            busy = false;
            if (!done) setIntent(null);
          });
        }
        return;
      }
      const fights = intent.kind === 'attack' || intent.kind === 'raid';
      if (fights && ms(state.figures.get(state.me.id)!.readyAt) > now) return;
      busy = true;
      void call((reducers) => perform(reducers, state, intent), PASSING).then((done) => {
        busy = false;
        if (!done || !fights) setIntent(null);
      });
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [intent, call]);

  const actions = useMemo<Actions>(() => ({ intent, call, walk, intend: setIntent }), [intent, call, walk]);
  return <Context.Provider value={actions}>{children}</Context.Provider>;
}

function perform(reducers: Reducers, world: World, intent: Intent): Promise<void> {
  switch (intent.kind) {
    case 'raid':
      return reducers.attack({ target: raidTarget(world)! });
    case 'attack':
      return reducers.attack({ target: intent.target });
    case 'pick':
      return reducers.pickUp({ itemId: intent.item });
    case 'quest':
      return reducers.acceptQuest({ giver: intent.giver });
  }
}

function spotOfIntent(world: World, intent: Intent, now: number): Spot | null {
  if (intent.kind === 'pick') {
    const item = world.items.find((row) => row.id === intent.item && row.ownerId === undefined);
    return item?.at ?? null;
  }
  const id = intent.kind === 'raid' ? raidTarget(world) : intent.kind === 'attack' ? intent.target : intent.giver;
  const who = id === undefined ? undefined : world.characters.get(id);
  if (who === undefined || (intent.kind !== 'quest' && who.hp === 0)) return null;
  return spotOf(world, who, now);
}

/** A little before the goal, on the way there. */
function shortOf(goal: Spot, from: Spot): Spot {
  const part = 1 - Math.min(1, SHORT / Math.max(1, apart(goal, from)));
  return { x: Math.round(from.x + (goal.x - from.x) * part), y: Math.round(from.y + (goal.y - from.y) * part) };
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1) + (/[.!?]$/.test(trimmed) ? '' : '.');
}
