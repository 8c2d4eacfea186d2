// The land: drawn once, never changed. Trees stand where a seeded die put them, so that they always stand there.

import { memo } from 'react';
import type { Place } from '../bindings/types';

export const WIDTH = 1000;
export const HEIGHT = 640;

const RIVER = 'M352 -10C340 80 392 130 384 210S330 330 352 410 430 540 400 650';
const ROADS = [
  'M265 500C320 470 360 430 400 400S460 350 500 345',
  'M500 345C570 350 640 400 705 430',
  'M500 345C500 270 470 180 450 95',
  'M500 345C600 320 720 260 790 190',
  'M265 500C220 450 180 400 165 330',
  'M165 330C130 280 110 230 115 165',
  'M705 430C680 490 620 540 560 575',
  'M115 165C200 120 330 90 450 95',
];

function* dice(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (state * 1664525 + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

interface Tree {
  x: number;
  y: number;
  size: number;
  shade: number;
}

const WOODS: [number, number, number, number, number][] = [
  // around x, y; within rx, ry; how many
  [110, 110, 100, 80, 26],
  [230, 230, 60, 70, 12],
  [70, 420, 60, 90, 14],
  [150, 580, 110, 45, 18],
  [560, 600, 130, 34, 12],
  [880, 560, 110, 70, 26],
  [620, 190, 70, 60, 12],
  [260, 60, 80, 40, 10],
  [880, 360, 90, 60, 14],
  [470, 480, 60, 50, 8],
];

const CLEAR: [number, number, number][] = [
  [500, 345, 62],
  [705, 430, 70],
  [265, 500, 52],
  [115, 165, 46],
  [450, 95, 42],
  [845, 150, 110],
  [165, 330, 52],
  [560, 575, 46],
];

const TREES: Tree[] = (() => {
  const die = dice(20);
  const trees: Tree[] = [];
  for (const [x, y, rx, ry, count] of WOODS) {
    for (let n = 0; n < count; n++) {
      const angle = die.next().value * Math.PI * 2;
      const far = Math.sqrt(die.next().value);
      const tree = {
        x: x + Math.cos(angle) * rx * far,
        y: y + Math.sin(angle) * ry * far,
        size: 7 + die.next().value * 6,
        shade: Math.floor(die.next().value * 3),
      };
      if (CLEAR.every(([cx, cy, r]) => Math.hypot(tree.x - cx, tree.y - cy) > r)) trees.push(tree);
    }
  }
  return trees.sort((a, b) => a.y - b.y);
})();

const TUFTS = (() => {
  const die = dice(7);
  return Array.from({ length: 90 }, () => ({ x: die.next().value * WIDTH, y: die.next().value * HEIGHT }));
})();

export const Terrain = memo(function Terrain({ places }: { places: readonly Place[] }) {
  return (
    <g className="terrain" aria-hidden>
      <defs>
        <radialGradient id="ground" cx="48%" cy="52%" r="75%">
          <stop offset="0" stopColor="#4b5d39" />
          <stop offset="0.55" stopColor="#3a4c33" />
          <stop offset="1" stopColor="#26332b" />
        </radialGradient>
        <radialGradient id="scorched">
          <stop offset="0" stopColor="#3a2620" />
          <stop offset="0.6" stopColor="#33291f" stopOpacity="0.85" />
          <stop offset="1" stopColor="#3a4c33" stopOpacity="0" />
        </radialGradient>
        <radialGradient id="meadow">
          <stop offset="0" stopColor="#71824a" stopOpacity="0.5" />
          <stop offset="1" stopColor="#71824a" stopOpacity="0" />
        </radialGradient>
        <radialGradient id="glow">
          <stop offset="0" stopColor="#ffcf7a" stopOpacity="0.85" />
          <stop offset="0.35" stopColor="#ffae4a" stopOpacity="0.35" />
          <stop offset="1" stopColor="#ff9a3c" stopOpacity="0" />
        </radialGradient>
      </defs>
      <rect x={-20} y={-20} width={WIDTH + 40} height={HEIGHT + 40} fill="url(#ground)" />
      <ellipse cx={270} cy={490} rx={170} ry={110} fill="url(#meadow)" />
      <ellipse cx={520} cy={340} rx={190} ry={120} fill="url(#meadow)" />
      <ellipse cx={720} cy={440} rx={150} ry={100} fill="url(#meadow)" />
      <ellipse cx={130} cy={180} rx={140} ry={100} fill="url(#meadow)" />
      <ellipse cx={850} cy={140} rx={210} ry={165} fill="url(#scorched)" />
      {TUFTS.map((tuft, n) => (
        <path key={n} d={`M${tuft.x} ${tuft.y}l2-5 2 5 2-4`} className="tuft" />
      ))}
      <path d={RIVER} className="river-bank" />
      <path d={RIVER} className="river" />
      <path d={RIVER} className="river-light" />
      {ROADS.map((road) => (
        <path key={road} d={road} className="road" />
      ))}
      {ROADS.map((road) => (
        <path key={road} d={road} className="road-track" />
      ))}
      <g className="bridge" transform="translate(352 412) rotate(-24)">
        <rect x={-30} y={-11} width={60} height={22} rx={3} />
        <path d="M-30-11h60M-30 11h60M-18-11v22M-6-11v22M6-11v22M18-11v22" />
      </g>
      <Mountains />
      {TREES.map((tree, n) => (
        <g key={n} className={`tree tree-${tree.shade}`} transform={`translate(${tree.x.toFixed(1)} ${tree.y.toFixed(1)}) scale(${(tree.size / 10).toFixed(2)})`}>
          <ellipse cx={1} cy={3} rx={9} ry={3.5} className="shadow" />
          <path d="M-1.500 3v-6h3v6z" fill="#3a2f24" />
          <path d="M0-22c5 3 9 8 8 13-1 4-5 6-8 6s-7-2-8-6c-1-5 3-10 8-13z" className="crown" />
          <path d="M0-22c5 3 9 8 8 13-1 4-4 6-7 6 4-6 3-13-1-19z" className="crown-shade" />
        </g>
      ))}
      {places.map((place) => (
        <g key={place.id} transform={`translate(${place.at.x} ${place.at.y})`}>
          <Landmark kind={place.kind} />
        </g>
      ))}
    </g>
  );
});

/** Above the light, so that one can read it at night. */
export const PlaceNames = memo(function PlaceNames({ places }: { places: readonly Place[] }) {
  return (
    <g aria-hidden pointerEvents="none">
      {places.map((place) => (
        <text key={place.id} className="place-name" x={place.at.x} y={place.at.y + (LABEL_Y[place.kind] ?? 44)}>
          {place.name}
        </text>
      ))}
    </g>
  );
});

const LABEL_Y: Record<string, number> = { lair: 70, market: 46, oak: 42, tower: 40, fountain: 44 };

function Mountains() {
  const peaks: [number, number, number][] = [
    [770, 70, 52],
    [940, 110, 64],
    [830, 40, 60],
    [900, 56, 70],
    [965, 190, 46],
    [732, 116, 34],
    [952, 248, 36],
  ];
  return (
    <g className="mountains">
      {peaks
        .sort((a, b) => a[1] - b[1])
        .map(([x, y, s]) => (
          <g key={`${x}`} transform={`translate(${x} ${y}) scale(${s / 50})`}>
            <path d="M-52 40-16-34-4-22 6-44 50 40z" fill="#4a4744" />
            <path d="M6-44 50 40H14L4-2z" fill="#37353a" />
            <path d="M-16-34-4-22-10-8-22-14zM6-44 16-24 6-14-2-24z" fill="#8b8781" opacity={0.5} />
          </g>
        ))}
    </g>
  );
}

function Landmark({ kind }: { kind: string }) {
  switch (kind) {
    case 'fountain':
      return (
        <g className="stone">
          <ellipse cx={0} cy={6} rx={46} ry={27} fill="#4d4a40" opacity={0.55} />
          <ellipse cx={0} cy={4} rx={26} ry={15} fill="#6f6a61" />
          <ellipse cx={0} cy={1} rx={26} ry={15} fill="#8a857a" />
          <ellipse cx={0} cy={1} rx={20} ry={11} fill="#2f6278" />
          <ellipse className="ripple" cx={0} cy={1} rx={9} ry={5} />
          <ellipse className="ripple" cx={0} cy={1} rx={15} ry={8} opacity={0.5} />
          <path d="M-4 0v-14h8V0z" fill="#9a9589" />
          <ellipse cx={0} cy={-15} rx={9} ry={4} fill="#b0aa9d" />
          <path d="M0-16c-2-5-7-6-9-1M0-16c2-5 7-6 9-1M0-15v-8" stroke="#9fd3e6" strokeWidth={1.4} fill="none" />
        </g>
      );
    case 'market':
      return (
        <g>
          <ellipse cx={0} cy={14} rx={60} ry={20} className="shadow" />
          <Stall x={-34} y={6} colour="#a94f3f" />
          <Stall x={34} y={8} colour="#4f7a8f" />
          <g transform="translate(0 -8)">
            <rect x={-24} y={-8} width={48} height={26} fill="#6b5238" />
            <path d="M-30-8 0-32 30-8z" fill="#8c4a35" />
            <path d="M0-32 30-8H0z" fill="#733a2b" />
            <rect x={-6} y={2} width={12} height={16} rx={6} fill="#2a1f17" />
            <rect x={-18} y={0} width={7} height={7} className="window" />
            <rect x={11} y={0} width={7} height={7} className="window" />
          </g>
        </g>
      );
    case 'mill':
      return (
        <g>
          <ellipse cx={0} cy={20} rx={34} ry={11} className="shadow" />
          <path d="M-14 20-9-16H9l5 36z" fill="#8f8470" />
          <path d="M2-16h7l5 36H4z" fill="#6f6655" />
          <path d="M-12-15 0-32 12-15z" fill="#7a4632" />
          <rect x={-5} y={6} width={10} height={14} rx={5} fill="#2a1f17" />
        </g>
      );
    case 'oak':
      return (
        <g>
          <ellipse cx={2} cy={22} rx={36} ry={11} className="shadow" />
          <path d="M-6 22c2-8 2-14-1-22h14c-3 8-3 14 0 22z" fill="#4c3a29" />
          <path d="M0-48c18-4 34 10 30 26 8 8 2 24-10 24-8 8-32 8-40 0-12 0-18-16-10-24-4-16 12-30 30-26z" fill="#4c6a35" />
          <path d="M8-47c14 2 26 13 22 25 8 8 2 24-10 24-4 4-10 5-16 5 14-12 16-34 4-54z" fill="#3b5530" />
          <circle cx={-10} cy={-20} r={3} fill="#7d9a4e" />
          <circle cx={-2} cy={-34} r={3} fill="#7d9a4e" />
        </g>
      );
    case 'tower':
      return (
        <g>
          <ellipse cx={0} cy={18} rx={24} ry={8} className="shadow" />
          <path d="M-12 18v-50h24v50z" fill="#7d7a75" />
          <path d="M3-32h9v50H3z" fill="#615f5d" />
          <path d="M-16-32v-10h6v5h6v-5h8v5h6v-5h6v10z" fill="#8d8a84" />
          <rect x={-3} y={-20} width={6} height={10} rx={3} className="window" />
          <path d="M0-42v-16l14 5-14 5" fill="#b5503f" stroke="#5a4636" strokeWidth={1.5} />
        </g>
      );
    case 'lair':
      return (
        <g>
          <path d="M-66 40c-8-30 6-78 66-82 60 4 74 52 66 82z" fill="#3b3635" />
          <path d="M10-42c52 6 64 54 56 82H22C40 10 36-20 10-42z" fill="#2b2829" />
          <path d="M-38 42c-4-34 14-56 38-56s42 22 38 56z" fill="#120d0d" />
          <path d="M-30 42c-2-24 12-42 30-42s32 18 30 42z" className="lair-mouth" />
          <path d="M-46 46l6-9 5 7M34 46l6-8 6 8M-58 44l4-6 4 6" stroke="#d8cfbd" strokeWidth={2} fill="none" opacity={0.6} />
        </g>
      );
    case 'camp':
      return (
        <g>
          <ellipse cx={0} cy={14} rx={48} ry={14} className="shadow" />
          <path d="M-44 14-24-18-6 14z" fill="#6d5a43" />
          <path d="M-24-18-6 14h-14z" fill="#54452f" />
          <path d="M10 16 28-16l18 32z" fill="#7a6247" />
          <path d="M28-16l18 32H32z" fill="#5d4a35" />
          <path d="M-6 18l12-4M-6 14l12 4" stroke="#4a3522" strokeWidth={3} strokeLinecap="round" />
          <path className="campfire" d="M0 14c-5-2-5-8-1-11 0 3 2 3 2 0 4 3 5 9-1 11z" />
        </g>
      );
    case 'den':
      return (
        <g>
          <ellipse cx={0} cy={14} rx={40} ry={10} className="shadow" />
          <path d="M-36 14c0-20 10-30 22-28 8-8 24-6 28 4 12 2 22 12 22 24z" fill="#55524d" />
          <path d="M14-10c12 2 22 12 22 24H18c4-8 2-18-4-24z" fill="#423f3d" />
          <path d="M-12 14c0-12 6-18 13-18s13 6 13 18z" fill="#171413" />
        </g>
      );
    default:
      return null;
  }
}

function Stall({ x, y, colour }: { x: number; y: number; colour: string }) {
  return (
    <g transform={`translate(${x} ${y})`}>
      <path d="M-16 12V-4M16 12V-4" stroke="#4a3a28" strokeWidth={2} />
      <rect x={-16} y={4} width={32} height={8} fill="#6b5238" />
      <path d="M-20-4-14-16h28l6 12z" fill={colour} />
      <path d="M-20-4h8v3a4 4 0 0 1-8 0zM-4-4h8v3a4 4 0 0 1-8 0zM12-4h8v3a4 4 0 0 1-8 0z" fill="#e5dcc6" opacity={0.85} />
      <path d="M-12-4h8v3a4 4 0 0 1-8 0zM4-4h8v3a4 4 0 0 1-8 0z" fill={colour} />
    </g>
  );
}
