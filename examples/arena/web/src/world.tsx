// Everything that the page knows of the arena: one subscription a table, read by all panels.

import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from 'react';
import type { Identity, Infer } from 'spacetimedb';
import { useSpacetimeDB, useTable } from 'spacetimedb/react';
import { tables } from './bindings';
import type * as Types from './bindings/types';
import { hear } from './clock';

type Rows<T> = readonly T[];

export interface World {
  /** Connected, and all tables have arrived. */
  live: boolean;
  /** Was live once: what is shown may be from before the connection was lost. */
  known: boolean;
  me: Types.Character | undefined;
  characters: ReadonlyMap<bigint, Types.Character>;
  figures: ReadonlyMap<bigint, Types.Figure>;
  walks: ReadonlyMap<bigint, Types.Walk>;
  effects: Rows<Types.Effect>;
  items: Rows<Types.Item>;
  lots: Rows<Types.Lot>;
  heldGold: Rows<Types.HeldGold>;
  encounter: Types.Encounter | undefined;
  lair: Types.Lair | undefined;
  raid: Rows<Types.RaidMember>;
  places: Rows<Types.Place>;
  time: Types.WorldTime | undefined;
  lines: Rows<Types.ChatLine>;
  news: Rows<Types.Chat>;
  notices: Rows<Types.Notice>;
  workflows: Rows<Types.Workflow>;
  timers: Rows<Types.WorkflowTimer>;
  events: Rows<Types.WorkflowEvent>;
}

const Context = createContext<World | null>(null);

export function useWorld(): World {
  const world = useContext(Context);
  if (world === null) throw new Error('useWorld is for what is inside of <WorldProvider>');
  return world;
}

/** Milliseconds since 1970. */
export function ms(time: { microsSinceUnixEpoch: bigint }): number {
  return Number(time.microsSinceUnixEpoch / 1000n);
}

const PUBLISH_MS = 60; // one commit changes several tables, and several commits come at once: draw them together

interface Raw {
  ready: boolean;
  identity: Identity | undefined;
  characters: Rows<Types.Character>;
  figures: Rows<Types.Figure>;
  walks: Rows<Types.Walk>;
  effects: Rows<Types.Effect>;
  items: Rows<Types.Item>;
  lots: Rows<Types.Lot>;
  heldGold: Rows<Types.HeldGold>;
  encounters: Rows<Types.Encounter>;
  lairs: Rows<Types.Lair>;
  raid: Rows<Types.RaidMember>;
  places: Rows<Types.Place>;
  times: Rows<Types.WorldTime>;
  lines: Rows<Types.ChatLine>;
  news: Rows<Types.Chat>;
  notices: Rows<Types.Notice>;
  workflows: Rows<Types.Workflow>;
  timers: Rows<Types.WorkflowTimer>;
  events: Rows<Types.WorkflowEvent>;
}

function worldOf(raw: Raw): World {
  const { identity } = raw;
  const me = identity && raw.characters.find((row) => row.identity?.isEqual(identity));
  const live = raw.ready && me !== undefined;
  return {
    live,
    known: live,
    me,
    characters: new Map(raw.characters.map((row) => [row.id, row])),
    figures: new Map(raw.figures.map((row) => [row.characterId, row])),
    walks: new Map(raw.walks.map((row) => [row.characterId, row])),
    effects: [...raw.effects].sort(byId),
    items: [...raw.items].sort(byId),
    lots: raw.lots,
    heldGold: raw.heldGold,
    encounter: raw.encounters[0],
    lair: raw.lairs[0],
    raid: raw.raid,
    places: raw.places,
    time: raw.times[0],
    lines: [...raw.lines].sort(byId),
    news: [...raw.news].sort(byId),
    notices: [...raw.notices].sort(byId),
    workflows: raw.workflows,
    timers: raw.timers,
    events: [...raw.events].sort(byId),
  };
}

const byId = <T extends { id: bigint }>(a: T, b: T): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

const onWalk = { onInsert: (walk: Infer<typeof Types.Walk>) => hear(ms(walk.beganAt)) };

export function WorldProvider({ children }: { children: ReactNode }) {
  const { identity, isActive } = useSpacetimeDB();
  const [characters, r1] = useTable(tables.character);
  const [figures, r2] = useTable(tables.figure);
  const [walks, r3] = useTable(tables.walk, onWalk);
  const [effects, r4] = useTable(tables.effect);
  const [items, r5] = useTable(tables.item);
  const [lots, r6] = useTable(tables.lot);
  const [heldGold, r7] = useTable(tables.heldGold);
  const [encounters, r8] = useTable(tables.encounter);
  const [lairs, r9] = useTable(tables.lair);
  const [raid, r10] = useTable(tables.raidMember);
  const [places, r11] = useTable(tables.place);
  const [times, r12] = useTable(tables.worldTime);
  const [lines, r13] = useTable(tables.chatLine);
  const [news, r14] = useTable(tables.chat);
  const [workflows, r15] = useTable(tables.workflow);
  const [timers, r16] = useTable(tables.workflowTimer);
  const [events, r17] = useTable(tables.workflowEvent);
  const [notices, r18] = useTable(tables.notice);
  const ready =
    isActive && r1 && r2 && r3 && r4 && r5 && r6 && r7 && r8 && r9 && r10 && r11 && r12 && r13 && r14 && r15 && r16 && r17 &&
    r18;

  const raw: Raw = {
    ready, identity, characters, figures, walks, effects, items, lots, heldGold, encounters, lairs, raid, places, times,
    lines, news, notices, workflows, timers, events,
  };
  const latest = useRef(raw);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const [world, setWorld] = useState<World>(() => worldOf(raw));
  useEffect(() => {
    latest.current = raw;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      // While the connection is lost, the last that was seen stays on the screen.
      const fresh = worldOf(latest.current);
      setWorld((old) => (fresh.live || !old.known ? fresh : { ...old, live: false }));
    }, PUBLISH_MS);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- each part of `raw`, and not the object, which is always new
  }, Object.values(raw));
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );

  return <Context.Provider value={world}>{children}</Context.Provider>;
}

// --- questions that several panels ask

export type Kind = 'me' | 'hero' | 'guard' | 'wolf' | 'bandit' | 'folk' | 'boss' | 'minion' | 'bank';

export function kindOf(world: World, who: Types.Character): Kind {
  if (who.id === world.me?.id) return 'me';
  if (who.name === 'the bank') return 'bank';
  const role = world.figures.get(who.id)?.role.tag;
  switch (role) {
    case 'Hero':
      return 'hero';
    case 'Guard':
      return 'guard';
    case 'Boss':
      return 'boss';
    case 'Folk':
      return 'folk';
    default:
      return who.name === 'a wolf' ? 'wolf' : who.name === 'a bandit' ? 'bandit' : 'minion';
  }
}

/** A character's workflows that wait for something. Auctions are an item's. */
export function workflowsOf(world: World, id: bigint): Types.Workflow[] {
  return world.workflows.filter(
    (row) => row.entityId === id && row.status.tag === 'Suspended' && row.workflowType !== 'auction',
  );
}

const decoder = new TextDecoder();

/** The variables of a waiting workflow. */
export function stateOf(row: Types.Workflow): Record<string, unknown> & { init?: Record<string, unknown> } {
  try {
    return JSON.parse(decoder.decode(row.stateData)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Where a workflow waits, and in which part of its code that is. */
export function stepOf(step: string): { wait: string; within: string } {
  const inside = step.indexOf(' in ');
  const after = step.lastIndexOf(' > ');
  if (after >= 0) return { wait: step.slice(after + 3), within: step.slice(0, after) };
  return inside < 0 ? { wait: step, within: '' } : { wait: step.slice(0, inside), within: step.slice(inside + 4) };
}

export interface Spot {
  x: number;
  y: number;
}

/** Where somebody is at this moment: on the way, that is a matter of the clock. */
export function spotOf(world: World, who: Types.Character, now: number): Spot {
  const walk = world.walks.get(who.id);
  if (walk === undefined) return who.at;
  const began = ms(walk.beganAt);
  const part = Math.min(1, Math.max(0, (now - began) / Math.max(1, ms(walk.arrivesAt) - began)));
  return {
    x: walk.start.x + (walk.to.x - walk.start.x) * part,
    y: walk.start.y + (walk.to.y - walk.start.y) * part,
  };
}

export function apart(a: Spot, b: Spot): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

export function thing(world: World, itemId: bigint): string {
  return world.items.find((item) => item.id === itemId)?.kind ?? 'thing';
}

export function nameOf(world: World, id: bigint | undefined): string {
  if (id === undefined) return 'nobody';
  if (id === world.me?.id) return 'you';
  return world.characters.get(id)?.name ?? 'somebody';
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The minions first: as long as they live, the dragon cannot be hurt. */
export function raidTarget(world: World): bigint | undefined {
  const minion = [...world.characters.values()].find((who) => kindOf(world, who) === 'minion' && who.hp > 0);
  return minion?.id ?? world.encounter?.boss;
}
