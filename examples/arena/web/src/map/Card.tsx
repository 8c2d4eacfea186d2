// What one learns about somebody by pointing at them: life, effects, and the workflows that they are in.

import { useEffect, useRef, type RefObject } from 'react';
import { useActions } from '../act';
import type { Character, Workflow } from '../bindings/types';
import { clockText, useNow } from '../clock';
import { EFFECT_ICONS, Icon } from '../ui/icons';
import { capital, kindOf, ms, stateOf, stepOf, useWorld, workflowsOf, type World } from '../world';
import type { Motion } from './motion';

const ROLES: Record<string, string> = {
  me: 'You',
  hero: 'Hero',
  guard: 'Guard',
  wolf: 'Beast',
  bandit: 'Outlaw',
  folk: 'Townsfolk',
  boss: 'Dragon',
  minion: 'Minion',
  bank: 'Bank',
};

interface Props {
  who: Character;
  motion: Motion;
  frame: RefObject<HTMLDivElement | null>;
  pinned: boolean;
  onClose: () => void;
}

export function Card({ who, motion, frame, pinned, onClose }: Props) {
  const world = useWorld();
  const { call, intend } = useActions();
  const now = useNow(250);
  const node = useRef<HTMLDivElement>(null);
  const kind = kindOf(world, who);

  useEffect(() => {
    let request = 0;
    const follow = () => {
      const at = motion.at(who.id);
      const box = frame.current;
      const card = node.current;
      if (at && box && card) {
        const { x, y } = motion.toFrame(at);
        const [width, height] = [card.offsetWidth, card.offsetHeight];
        const aside = x + 30 + width > box.clientWidth ? x - width - 30 : x + 30;
        const left = Math.max(8, Math.min(box.clientWidth - width - 8, aside));
        const top = Math.max(8, Math.min(box.clientHeight - height - 8, y - height / 2));
        card.style.transform = `translate3d(${left.toFixed(0)}px, ${top.toFixed(0)}px, 0)`;
      }
      request = requestAnimationFrame(follow);
    };
    follow();
    return () => cancelAnimationFrame(request);
  }, [who.id, motion, frame]);

  const effects = world.effects.filter((effect) => effect.characterId === who.id);
  const workflows = workflowsOf(world, who.id);
  return (
    <div className={`card ${pinned ? 'is-pinned' : ''}`} ref={node} data-testid="card" onClick={(event) => event.stopPropagation()}>
      <header>
        <strong>{capital(who.name)}</strong>
        <span className="muted">{ROLES[kind]}</span>
      </header>
      <div className="meter meter-life" aria-label={`${who.hp} of ${who.hpMax} hit points`}>
        <i style={{ transform: `scaleX(${who.hpMax ? who.hp / who.hpMax : 0})` }} />
        <span>
          {who.hp} / {who.hpMax}
        </span>
      </div>
      {effects.length > 0 && (
        <ul className="card-effects">
          {effects.map((effect) => (
            <li key={effect.id} className={`effect-${effect.kind}`}>
              <Icon name={EFFECT_ICONS[effect.kind] ?? 'flame'} size={14} />
              <span>
                {capital(effect.kind)}
                {effect.stacks > 1 && ` ×${effect.stacks}`}
              </span>
              {effect.kind !== 'immune' && <time>{clockText(ms(effect.until) - now)}</time>}
              {pinned && (kind === 'hero' || kind === 'guard') && (
                <button
                  type="button"
                  className="link"
                  onClick={() => void call((r) => r.dispel({ target: who.id, kind: effect.kind }))}
                >
                  dispel
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {workflows
        .filter((row) => row.workflowType !== 'buff')
        .map((row) => (
          <Run key={row.id} row={row} world={world} now={now} />
        ))}
      {kind === 'folk' && who.name === 'the miller' && (
        <button type="button" className="button button-small" onClick={() => intend({ kind: 'quest', giver: who.id })}>
          <Icon name="scroll" size={15} /> Ask for work
        </button>
      )}
      {pinned && (
        <button type="button" className="close" onClick={onClose} aria-label="Close">
          <Icon name="cross" size={14} />
        </button>
      )}
    </div>
  );
}

/** A workflow: its type, the step where it waits, what its variables are, and its timers. */
function Run({ row, world, now }: { row: Workflow; world: World; now: number }) {
  const step = stepOf(row.currentStep);
  const timers = world.timers.filter((timer) => timer.workflowId === row.id);
  const variables = Object.entries(stateOf(row)).filter(
    ([name, value]) => !/[$]/.test(name) && ['number', 'boolean'].includes(typeof value) && name !== 'boss',
  );
  return (
    <section className="run" data-testid="run">
      <div className="run-head">
        <Icon name="gear" size={13} />
        <b>{row.workflowType.replace('_', ' ')}</b>
        <span className="muted">#{String(row.id)}</span>
      </div>
      <code>{step.wait}</code>
      {step.within !== '' && <code className="within">in {step.within}</code>}
      {variables.length > 0 && (
        <div className="run-vars">
          {variables.map(([name, value]) => (
            <span key={name}>
              {name} <b>{String(value)}</b>
            </span>
          ))}
        </div>
      )}
      {timers.map((timer) => (
        <div key={timer.scheduledId} className="run-timer">
          <Icon name="hourglass" size={12} />
          <span>{timer.timerName.replace('_', ' ')}</span>
          <time>{((Math.max(0, ms(timer.dueAt) - now) / 1000)).toFixed(1)} s</time>
        </div>
      ))}
    </section>
  );
}
