// The map: the land, who is on it, and what one clicks. Layers that seldom change lie below those that move.

import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useActions } from '../act';
import type { Item } from '../bindings/types';
import { serverNow, useNow } from '../clock';
import { Glyph } from '../ui/icons';
import { kindOf, ms, nameOf, thing, useWorld, type Spot, type World } from '../world';
import { Card } from './Card';
import { Hint, useLessons } from './Hint';
import { Motion } from './motion';
import { HEIGHT, PlaceNames, Terrain, WIDTH } from './Terrain';
import { Bubble, Token } from './Token';

const SPEECH_MS = 5000;
const CLOSE = 0.82;
const LIGHTS: [number, number, number][] = [
  [500, 345, 105],
  [705, 425, 120],
  [165, 340, 90],
  [450, 80, 60],
  [265, 495, 70],
];

export function MapView() {
  const world = useWorld();
  const actions = useActions();
  const frame = useRef<HTMLDivElement>(null);
  const land = useRef<HTMLDivElement>(null);
  const [motion] = useState(() => new Motion());
  const [scale, setScale] = useState(1);
  const [over, setOver] = useState<bigint | null>(null);
  const [pinned, setPinned] = useState<bigint | null>(null);
  const [goal, setGoal] = useState<Spot | null>(null);
  const [lessons, learn] = useLessons();
  const floaters = useFloaters(world, motion);
  const fires = useFires(world);
  const latest = useRef({ world, actions, learn });

  motion.world = world;
  useEffect(() => {
    latest.current = { world, actions, learn };
  });

  useEffect(() => {
    motion.land = land.current;
    const measure = () => {
      const { width, height } = frame.current!.getBoundingClientRect();
      if (width === 0) return; // another tab is shown
      motion.fit(width, height, width < 600 ? CLOSE : 0);
      setScale(motion.scale);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current!);
    const stop = motion.start();
    return () => {
      observer.disconnect();
      stop();
    };
  }, [motion]);

  const point = useCallback((id: bigint | null) => {
    if (id !== null) latest.current.learn('look');
    setOver(id);
  }, []);

  const press = useCallback((id: bigint) => {
    const now = latest.current;
    now.learn('look');
    const who = now.world.characters.get(id);
    if (who === undefined) return;
    const kind = kindOf(now.world, who);
    setPinned((old) => (old === id ? null : id));
    if (kind === 'minion' || (kind === 'boss' && now.world.encounter !== undefined)) now.actions.intend({ kind: 'raid' });
    else if (kind === 'wolf' || kind === 'bandit') now.actions.intend({ kind: 'attack', target: id });
  }, []);

  const pick = useCallback((item: bigint) => latest.current.actions.intend({ kind: 'pick', item }), []);

  const ground = (event: React.MouseEvent<HTMLDivElement>) => {
    const box = frame.current!.getBoundingClientRect();
    const at = motion.toLand({ x: event.clientX - box.left, y: event.clientY - box.top });
    const inside = { x: Math.min(WIDTH - 5, Math.max(5, at.x)), y: Math.min(HEIGHT - 5, Math.max(5, at.y)) };
    setPinned(null);
    setGoal(inside);
    learn('walk');
    actions.walk(inside);
  };

  const tokens = useMemo(() => {
    const fighters = fightersOf(world);
    return [...world.characters.values()]
      .map((who) => ({ who, kind: kindOf(world, who) }))
      .filter(({ who, kind }) => kind !== 'bank' && (kind !== 'hero' || world.figures.get(who.id)?.online !== false))
      .sort((a, b) => Number(a.kind === 'me') - Number(b.kind === 'me'))
      .map(({ who, kind }) => ({
        who,
        kind,
        fighting: fighters.has(who.id),
        buff: world.effects.find((effect) => effect.characterId === who.id)?.kind ?? '',
      }));
  }, [world]);

  const phase = world.time?.phase ?? 'day';
  const shown = pinned ?? over;
  const shownWho = shown === null ? undefined : world.characters.get(shown);
  const walking = world.me !== undefined && world.walks.has(world.me.id);

  return (
    <div
      className={`map phase-${phase} ${world.encounter ? 'boss-awake' : ''}`}
      ref={frame}
      data-testid="map"
      onClick={ground}
      role="application"
      aria-label="The map of the arena: click to walk"
    >
      <div className="land" ref={land} style={{ width: WIDTH * scale, height: HEIGHT * scale, '--scale': scale } as React.CSSProperties}>
        <svg className="layer" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden>
          <Terrain places={world.places} />
        </svg>
        <Sails />
        <div className="tint" />
        <svg className="layer lights" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden>
          {LIGHTS.map(([x, y, r]) => (
            <circle key={x} cx={x} cy={y} r={r} fill="url(#glow)" />
          ))}
        </svg>
        <div className="lair-ember" />
        <Herbs items={world.items} onPick={pick} />
        <svg className="layer no-press" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden>
          <PlaceNames places={world.places} />
          {goal && walking && (
            <g className="goal" transform={`translate(${goal.x.toFixed(0)} ${goal.y.toFixed(0)})`}>
              <circle r={9} />
              <circle r={3} />
            </g>
          )}
        </svg>
        {tokens.map(({ who, kind, fighting, buff }) => (
          <Token
            key={who.id}
            id={who.id}
            name={who.name}
            hp={who.hp}
            hpMax={who.hpMax}
            kind={kind}
            fighting={fighting}
            awake={world.encounter !== undefined}
            buff={buff}
            chosen={shown === who.id}
            place={motion.place}
            onOver={point}
            onPress={press}
          />
        ))}
        <Bubbles world={world} motion={motion} />
        {fires.map((fire) => (
          <svg key={fire.key} className="layer no-press breath" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} data-testid="breath">
            <g transform={`translate(${fire.x} ${fire.y})`}>
              <circle r={40} />
              <circle r={40} className="breath-late" />
              <path d="M-20 18C-90 70-120 90-150 150-96 120-60 110-30 128-18 96 6 60 26 22z" />
            </g>
          </svg>
        ))}
        {floaters.map((floater) => (
          <span
            key={floater.key}
            className={`floater ${floater.good ? 'is-good' : ''}`}
            style={{ left: floater.x * scale, top: floater.y * scale }}
          >
            {floater.text}
          </span>
        ))}
      </div>
      {shownWho && <Card who={shownWho} motion={motion} frame={frame} pinned={pinned !== null} onClose={() => setPinned(null)} />}
      {actions.intent === null && <Hint lessons={lessons} onClose={() => learn('walk', 'look')} />}
      <IntentNote world={world} />
    </div>
  );
}

/** Who is in a combat: the one who decides, and who is fought. */
function fightersOf(world: World): Set<bigint> {
  const fighters = new Set<bigint>();
  for (const row of world.workflows) {
    if (row.workflowType !== 'combat' || row.status.tag !== 'Suspended' || row.entityId === undefined) continue;
    fighters.add(row.entityId);
    for (const figure of world.figures.values()) {
      if (figure.opponent === row.entityId) fighters.add(figure.characterId);
    }
  }
  return fighters;
}

/** The mill turns: a layer of its own, so that nothing else is painted with it. */
const Sails = memo(function Sails() {
  return (
    <div className="sails">
      <svg viewBox="-32 -32 64 64" aria-hidden>
        <path d="M-2 0-4-28h8L2 0zM0-2l28-4v8L0 2zM2 0l4 28h-8L-2 0zM0 2l-28 4v-8L0-2z" fill="#d6c9ac" opacity={0.9} />
        <circle r={3} fill="#4a3a28" />
      </svg>
    </div>
  );
});

const Herbs = memo(
  function Herbs({ items, onPick }: { items: readonly Item[]; onPick: (id: bigint) => void }) {
    return (
      <svg className="layer herbs" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden>
        {items
          .filter((item) => item.ownerId === undefined)
          .map((item) => (
            <g
              key={item.id}
              className="herb"
              transform={`translate(${item.at.x - 9} ${item.at.y - 9}) scale(0.75)`}
              onClick={(event) => {
                event.stopPropagation();
                onPick(item.id);
              }}
            >
              <title>{`${item.kind}: pick it up`}</title>
              <rect x={-6} y={-6} width={36} height={36} fill="transparent" />
              <Glyph name="herb" width={2} />
            </g>
          ))}
      </svg>
    );
  },
  (before, after) => lying(before.items) === lying(after.items),
);

function lying(items: readonly Item[]): string {
  return items
    .filter((item) => item.ownerId === undefined)
    .map((item) => `${item.id}:${item.at.x},${item.at.y}`)
    .join(' ');
}

function Bubbles({ world, motion }: { world: World; motion: Motion }) {
  const now = useNow(1000);
  const said = new Map<bigint, string>();
  for (const line of world.lines.slice(-8)) {
    if (now - ms(line.at) < SPEECH_MS) said.set(line.authorId, line.text);
  }
  return [...said].map(([id, text]) => {
    const who = world.characters.get(id);
    if (who === undefined || world.figures.get(id)?.online === false) return null;
    return <Bubble key={id} who={who} kind={kindOf(world, who)} text={text} place={motion.place} />;
  });
}

function IntentNote({ world }: { world: World }) {
  const { intent, intend } = useActions();
  if (intent === null) return null;
  const text =
    intent.kind === 'raid'
      ? 'Fighting the dragon'
      : intent.kind === 'attack'
      ? `Fighting ${nameOf(world, intent.target)}`
      : intent.kind === 'pick'
        ? `Fetching the ${thing(world, intent.item)}`
        : `Walking to ${nameOf(world, intent.giver)}`;
  return (
    <button
      type="button"
      className="intent"
      onClick={(event) => {
        event.stopPropagation();
        intend(null);
      }}
    >
      {text} <span>stop</span>
    </button>
  );
}

interface Floater {
  key: number;
  x: number;
  y: number;
  text: string;
  good: boolean;
}

const FLOATERS_MAX = 14;
const FLOAT_MS = 1300;

/** Numbers that rise where somebody was hurt or healed. */
function useFloaters(world: World, motion: Motion): Floater[] {
  const [floaters, setFloaters] = useState<Floater[]>([]);
  const before = useRef(world.characters);
  const next = useRef(1);
  useEffect(() => {
    const fresh: Floater[] = [];
    for (const who of world.characters.values()) {
      const old = before.current.get(who.id);
      const change = old === undefined || old.hpMax !== who.hpMax ? 0 : who.hp - old.hp;
      const at = motion.at(who.id);
      if (at !== undefined && (change < 0 || change > 8)) {
        const shift = ((next.current * 37) % 26) - 13;
        const text = change > 0 ? `+${change}` : `${change}`;
        fresh.push({ key: next.current++, x: at.x + shift, y: at.y - 26, text, good: change > 0 });
      }
    }
    before.current = world.characters;
    if (fresh.length === 0) return;
    setFloaters((all) => [...all, ...fresh].slice(-FLOATERS_MAX));
    setTimeout(() => setFloaters((all) => all.filter((floater) => !fresh.includes(floater))), FLOAT_MS);
  }, [world.characters, motion]);
  return floaters;
}

interface Fire {
  key: number;
  x: number;
  y: number;
}

/** The dragon breathes when its next breath moves on. */
function useFires(world: World): Fire[] {
  const [fires, setFires] = useState<Fire[]>([]);
  const before = useRef<number | undefined>(undefined);
  const boss = world.encounter && world.characters.get(world.encounter.boss);
  const breath = world.encounter?.breathesAt && ms(world.encounter.breathesAt);
  useEffect(() => {
    const last = before.current;
    before.current = breath;
    if (boss === undefined || last === undefined || breath === undefined || breath <= last) return;
    if (serverNow() - last > 4000) return;
    const fire = { key: breath, x: boss.at.x, y: boss.at.y };
    setFires((all) => [...all, fire]);
    setTimeout(() => setFires((all) => all.filter((other) => other !== fire)), 1600);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [breath]);
  return fires;
}
