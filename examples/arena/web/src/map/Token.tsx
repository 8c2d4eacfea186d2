// Somebody on the map: a medallion with a ring of life. Where it stands is the map's business, not React's.

import { memo } from 'react';
import type { Character } from '../bindings/types';
import { Glyph, type IconName } from '../ui/icons';
import type { Kind } from '../world';

export const TOKEN: Record<Kind, { icon: IconName; radius: number }> = {
  me: { icon: 'person', radius: 15 },
  hero: { icon: 'person', radius: 13 },
  guard: { icon: 'helm', radius: 15 },
  wolf: { icon: 'wolf', radius: 12 },
  bandit: { icon: 'mask', radius: 12 },
  folk: { icon: 'hood', radius: 12 },
  boss: { icon: 'dragon', radius: 30 },
  minion: { icon: 'imp', radius: 14 },
  bank: { icon: 'coin', radius: 1 },
};

interface Props {
  who: Character;
  kind: Kind;
  fighting: boolean;
  awake: boolean;
  away: boolean;
  buffs: string;
  chosen: boolean;
  place: (id: bigint, node: SVGGElement | null) => void;
  onOver: (id: bigint | null) => void;
  onPress: (id: bigint) => void;
}

export const Token = memo(function Token(props: Props) {
  const { who, kind, fighting, awake, away, buffs, chosen } = props;
  const { icon, radius } = TOKEN[kind];
  const life = who.hpMax > 0 ? who.hp / who.hpMax : 0;
  const around = 2 * Math.PI * (radius + 2.5);
  const named = kind === 'me' || kind === 'hero' || kind === 'guard' || kind === 'folk' || chosen;
  const state = [
    'token',
    `token-${kind}`,
    who.hp === 0 && kind !== 'boss' ? 'is-down' : '',
    kind === 'boss' && !awake ? 'is-asleep' : '',
    away ? 'is-away' : '',
    chosen ? 'is-chosen' : '',
    fighting ? 'is-fighting' : '',
  ].join(' ');
  return (
    <g
      ref={(node) => {
        props.place(who.id, node);
        return () => props.place(who.id, null);
      }}
      className={state}
      data-id={String(who.id)}
      data-name={who.name}
      onPointerEnter={(event) => event.pointerType === 'mouse' && props.onOver(who.id)}
      onPointerLeave={() => props.onOver(null)}
      onClick={(event) => {
        event.stopPropagation();
        props.onPress(who.id);
      }}
    >
      <ellipse cx={0} cy={radius + 3} rx={radius} ry={radius / 3} className="shadow" />
      <circle r={radius + 9} fill="transparent" />
      {buffs !== '' && <circle className={`aura aura-${buffs}`} r={radius + 7} />}
      <circle className="token-disc" r={radius} />
      <g transform={`translate(${-radius * 0.72} ${-radius * 0.72}) scale(${(radius * 1.44) / 24})`} className="token-glyph">
        <Glyph name={icon} width={1.9} />
      </g>
      <circle className="token-track" r={radius + 2.5} />
      <circle
        className={`token-life ${life < 0.3 ? 'life-low' : life < 0.6 ? 'life-mid' : ''}`}
        r={radius + 2.5}
        strokeDasharray={`${(around * life).toFixed(1)} ${around.toFixed(1)}`}
        transform="rotate(-90)"
      />
      {fighting && (
        <g className="clash" transform={`translate(-9 ${-radius - 24}) scale(0.75)`}>
          <path d="M4 4l14 14M20 4 6 18M4 15l5 5M20 15l-5 5" />
        </g>
      )}
      {kind === 'boss' && !awake && (
        <text className="snore" x={radius} y={-radius}>
          z z
        </text>
      )}
      {named && (
        <text className="token-name" y={radius + 16}>
          {who.name}
        </text>
      )}
    </g>
  );
});

const LETTERS_MAX = 40;

/** What somebody says, over their head. */
export function Bubble({ text, kind, id, place }: { text: string; kind: Kind; id: bigint; place: Props['place'] }) {
  const shown = text.length > LETTERS_MAX ? `${text.slice(0, LETTERS_MAX - 1)}…` : text;
  const width = shown.length * 5.3 + 18;
  return (
    <g
      className="bubble"
      ref={(node) => {
        place(-id, node);
        return () => place(-id, null);
      }}
    >
      <g transform={`translate(0 ${-TOKEN[kind].radius - 12})`}>
        <path d="M-5-1 0 6l5-7z" />
        <rect x={-width / 2} y={-22} width={width} height={22} rx={8} />
        <text y={-7}>{shown}</text>
      </g>
    </g>
  );
}
