// Somebody on the map: a medallion with a ring of life. Where it stands is the map's business, not React's.

import { memo, type ReactNode } from 'react';
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

type Placing = (id: bigint, node: HTMLElement | null) => void;

interface Props {
  id: bigint;
  name: string;
  hp: number;
  hpMax: number;
  kind: Kind;
  fighting: boolean;
  awake: boolean;
  buff: string;
  chosen: boolean;
  place: Placing;
  onOver: (id: bigint | null) => void;
  onPress: (id: bigint) => void;
}

export const Token = memo(function Token(props: Props) {
  const { id, name, hp, hpMax, kind, fighting, awake, buff, chosen } = props;
  const { icon, radius } = TOKEN[kind];
  const life = hpMax > 0 ? hp / hpMax : 0;
  const around = 2 * Math.PI * (radius + 2.5);
  const named = kind === 'me' || kind === 'hero' || kind === 'guard' || kind === 'folk' || chosen;
  const asleep = kind === 'boss' && !awake;
  const state = [
    'token',
    `token-${kind}`,
    hp === 0 && kind !== 'boss' ? 'is-down' : '',
    asleep ? 'is-asleep' : '',
    chosen ? 'is-chosen' : '',
  ].join(' ');
  return (
    <Placed id={id} place={props.place} className={state}>
      <div
        className="token-body"
        data-id={String(id)}
        data-name={name}
        onPointerEnter={(event) => event.pointerType === 'mouse' && props.onOver(id)}
        onPointerLeave={() => props.onOver(null)}
        onClick={(event) => {
          event.stopPropagation();
          props.onPress(id);
        }}
        style={{ width: radius * 2 + 12, height: radius * 2 + 12, margin: -radius - 6 }}
      />
      <svg className="token-art" width="1" height="1" aria-hidden>
        <ellipse cx={0} cy={radius + 3} rx={radius} ry={radius / 3} className="shadow" />
        {buff !== '' && <circle className={`aura aura-${buff}`} r={radius + 6.5} />}
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
        {asleep && (
          <text className="snore" x={radius} y={-radius}>
            z z
          </text>
        )}
        {named && (
          <text className="token-name" y={radius + 16}>
            {name}
          </text>
        )}
      </svg>
    </Placed>
  );
});

const LETTERS_MAX = 64;

/** What somebody says, over their head. */
export function Bubble({ who, kind, text, place }: { who: Character; kind: Kind; text: string; place: Placing }) {
  const shown = text.length > LETTERS_MAX ? `${text.slice(0, LETTERS_MAX - 1)}…` : text;
  return (
    <Placed id={-who.id} place={place} className="bubble">
      <p style={{ bottom: TOKEN[kind].radius + 12 }}>{shown}</p>
    </Placed>
  );
}

function Placed({ id, place, className, children }: { id: bigint; place: Placing; className: string; children: ReactNode }) {
  return (
    <div
      className={`placed ${className}`}
      ref={(node) => {
        place(id, node);
        return () => place(id, null);
      }}
    >
      {children}
    </div>
  );
}
