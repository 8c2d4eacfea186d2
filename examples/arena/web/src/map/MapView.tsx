// The map: the land, who is on it, and what one clicks.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useActions } from '../act';
import { ms, kindOf, nameOf, thing, useWorld, type Spot, type World } from '../world';
import { serverNow, useNow } from '../clock';
import { Glyph } from '../ui/icons';
import { Card } from './Card';
import { Motion } from './motion';
import { HEIGHT, PlaceNames, Terrain, WIDTH } from './Terrain';
import { Bubble, Token } from './Token';

const SPEECH_MS = 5000;
const CLOSE = 0.82;

interface Floater {
  key: number;
  x: number;
  y: number;
  text: string;
  good: boolean;
}

export function MapView() {
  const world = useWorld();
  const actions = useActions();
  const now = useNow(1000);
  const frame = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [motion] = useState(() => new Motion());
  const [over, setOver] = useState<bigint | null>(null);
  const [pinned, setPinned] = useState<bigint | null>(null);
  const [goal, setGoal] = useState<{ key: number; at: Spot } | null>(null);
  const floaters = useFloaters(world, motion);
  const fires = useFires(world);

  motion.world = world;

  useEffect(() => {
    motion.svg = svg.current;
    const measure = () => {
      const box = frame.current!.getBoundingClientRect();
      motion.size = { width: box.width, height: box.height };
      motion.closest = box.width < 600 ? CLOSE : 0;
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

  const press = useCallback(
    (id: bigint) => {
      const who = world.characters.get(id);
      if (who === undefined) return;
      const kind = kindOf(world, who);
      setPinned((old) => (old === id ? null : id));
      if (kind === 'wolf' || kind === 'bandit' || kind === 'minion') actions.intend({ kind: 'attack', target: id });
      if (kind === 'boss' && world.encounter !== undefined) actions.intend({ kind: 'attack', target: id });
    },
    [world, actions],
  );

  const ground = (event: React.MouseEvent<SVGSVGElement>) => {
    const matrix = svg.current?.getScreenCTM()?.inverse();
    if (!matrix) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    const inside = { x: Math.min(WIDTH - 5, Math.max(5, at.x)), y: Math.min(HEIGHT - 5, Math.max(5, at.y)) };
    setPinned(null);
    setGoal((old) => ({ key: (old?.key ?? 0) + 1, at: inside }));
    actions.walk(inside);
  };

  const speeches = useMemo(() => {
    const found = new Map<bigint, string>();
    for (const line of world.lines.slice(-8)) {
      if (now - ms(line.at) < SPEECH_MS) found.set(line.authorId, line.text);
    }
    return found;
  }, [world.lines, now]);

  const tokens = useMemo(() => {
    const fighters = new Set<bigint>();
    for (const row of world.workflows) {
      if (row.workflowType === 'combat' && row.status.tag === 'Suspended' && row.entityId !== undefined) {
        fighters.add(row.entityId);
        for (const figure of world.figures.values()) {
          if (figure.opponent === row.entityId) fighters.add(figure.characterId);
        }
      }
    }
    return [...world.characters.values()]
      .map((who) => ({ who, kind: kindOf(world, who) }))
      .filter(({ who, kind }) => kind !== 'bank' && (kind !== 'hero' || world.figures.get(who.id)?.online !== false))
      .sort((a, b) => Number(a.kind === 'me') - Number(b.kind === 'me'))
      .map(({ who, kind }) => ({
        who,
        kind,
        fighting: fighters.has(who.id),
        buffs: world.effects.find((effect) => effect.characterId === who.id)?.kind ?? '',
      }));
  }, [world]);

  const phase = world.time?.phase ?? 'day';
  const shown = pinned ?? over;
  const shownWho = shown === null ? undefined : world.characters.get(shown);

  return (
    <div className="map" ref={frame} data-testid="map">
      <svg
        ref={svg}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="xMidYMid slice"
        className={`map-svg phase-${phase} ${world.encounter ? 'boss-awake' : ''}`}
        onClick={ground}
        role="img"
        aria-label="The map of the arena"
      >
        <Terrain places={world.places} />
        {world.items
          .filter((item) => item.ownerId === undefined)
          .map((item) => (
            <g
              key={item.id}
              className="herb"
              transform={`translate(${item.at.x - 9} ${item.at.y - 9}) scale(0.75)`}
              onClick={(event) => {
                event.stopPropagation();
                actions.intend({ kind: 'pick', item: item.id });
              }}
            >
              <title>{`${item.kind}: pick it up`}</title>
              <rect x={-6} y={-6} width={36} height={36} fill="transparent" />
              <Glyph name="herb" width={2} />
            </g>
          ))}
        <rect className="tint" x={-20} y={-20} width={WIDTH + 40} height={HEIGHT + 40} pointerEvents="none" />
        <g className="lights" pointerEvents="none">
          <circle cx={500} cy={345} r={95} fill="url(#glow)" />
          <circle cx={705} cy={425} r={110} fill="url(#glow)" />
          <circle cx={165} cy={340} r={80} fill="url(#glow)" />
          <circle cx={450} cy={80} r={55} fill="url(#glow)" />
          <circle cx={265} cy={495} r={60} fill="url(#glow)" />
        </g>
        <PlaceNames places={world.places} />
        {goal && world.me && world.walks.has(world.me.id) && (
          <g key={goal.key} className="goal" transform={`translate(${goal.at.x} ${goal.at.y})`}>
            <circle r={9} />
            <circle r={3} />
          </g>
        )}
        {tokens.map(({ who, kind, fighting, buffs }) => (
          <Token
            key={who.id}
            who={who}
            kind={kind}
            fighting={fighting}
            awake={world.encounter !== undefined}
            away={false}
            buffs={buffs}
            chosen={shown === who.id}
            place={motion.place}
            onOver={setOver}
            onPress={press}
          />
        ))}
        {tokens.map(({ who, kind }) => {
          const text = speeches.get(who.id);
          return text === undefined ? null : <Bubble key={who.id} text={text} kind={kind} id={who.id} place={motion.place} />;
        })}
        {fires.map((fire) => (
          <g key={fire.key} className="breath" transform={`translate(${fire.x} ${fire.y})`} data-testid="breath">
            <circle r={40} />
            <circle r={40} className="breath-late" />
            <path d="M-20 18C-90 70-120 90-150 150-96 120-60 110-30 128-18 96 6 60 26 22z" />
          </g>
        ))}
        {floaters.map((floater) => (
          <text key={floater.key} className={`floater ${floater.good ? 'is-good' : ''}`} x={floater.x} y={floater.y}>
            {floater.text}
          </text>
        ))}
      </svg>
      {shownWho && <Card who={shownWho} motion={motion} frame={frame} svg={svg} pinned={pinned !== null} onClose={() => setPinned(null)} />}
      <IntentNote world={world} />
    </div>
  );
}

function IntentNote({ world }: { world: World }) {
  const { intent, intend } = useActions();
  if (intent === null) return null;
  const text =
    intent.kind === 'attack'
      ? `Fighting ${nameOf(world, intent.target)}`
      : intent.kind === 'pick'
        ? `Fetching the ${thing(world, intent.item)}`
        : `Walking to ${nameOf(world, intent.giver)}`;
  return (
    <button type="button" className="intent" onClick={() => intend(null)}>
      {text} <span>stop</span>
    </button>
  );
}

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
        fresh.push({ key: next.current++, x: at.x + shift, y: at.y - 20, text: change > 0 ? `+${change}` : `${change}`, good: change > 0 });
      }
    }
    before.current = world.characters;
    if (fresh.length > 0) setFloaters((all) => [...all, ...fresh].slice(-16));
  }, [world.characters, motion]);
  useEffect(() => {
    if (floaters.length === 0) return;
    const timer = setTimeout(() => setFloaters([]), 1400);
    return () => clearTimeout(timer);
  }, [floaters]);
  return floaters;
}

/** The dragon breathes when its next breath moves on. */
function useFires(world: World): { key: number; x: number; y: number }[] {
  const [fires, setFires] = useState<{ key: number; x: number; y: number }[]>([]);
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
    const timer = setTimeout(() => setFires((all) => all.filter((f) => f !== fire)), 1600);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [breath]);
  return fires;
}

