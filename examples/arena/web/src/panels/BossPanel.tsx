import { useActions } from '../act';
import type { Character } from '../bindings/types';
import { clockText, useNow } from '../clock';
import { Icon } from '../ui/icons';
import { capital, kindOf, ms, useWorld, type World } from '../world';
import { raidTarget } from './HeroPanel';
import { Panel } from './Panel';

const PHASES = ['Awakening', 'Brood', 'Flames', 'Last stand'];
const HINTS = [
  'It strikes back at everybody who hits it.',
  'It cannot be hurt while its minions live.',
  'Everybody in the raid burns when it breathes.',
  'It is stronger now. Finish it!',
];
const ENRAGE_MS = 230_000;
const BREATH_MS = 15_000;
const OUTCOMES: Record<string, string> = {
  victory: 'The raid won the last fight.',
  wipe: 'The dragon felled the whole raid.',
  enraged: 'The raid was too slow, and burned.',
};

export function BossPanel() {
  const world = useWorld();
  const now = useNow(100);
  const fight = world.encounter;
  const lair = world.lair;
  const boss = lair && world.characters.get(lair.boss);
  if (lair === undefined || boss === undefined) return null;
  const breath = fight?.breathesAt && ms(fight.breathesAt) - now;
  const justBreathed = breath !== undefined && breath > BREATH_MS - 1200 && breath <= BREATH_MS;
  return (
    <Panel
      icon="dragon"
      title="The dragon"
      className={`boss ${fight ? `is-awake phase-${fight.phase}` : ''} ${justBreathed ? 'is-burning' : ''}`}
      note={
        <span className="muted" title="Fights that the raid won">
          {lair.won} of {lair.fights} won
        </span>
      }
    >
      {fight === undefined ? (
        <Asleep world={world} now={now} />
      ) : (
        <div className="boss-body" data-testid="boss" data-phase={fight.phase}>
          <div className="phases" aria-label={`Phase ${fight.phase} of 4`}>
            {PHASES.map((name, n) => (
              <span key={name} className={n + 1 === fight.phase ? 'on' : n + 1 < fight.phase ? 'past' : ''}>
                <b>{n + 1}</b>
                {name}
              </span>
            ))}
          </div>
          <div className={`meter meter-boss ${fight.phase === 2 ? 'is-immune' : ''}`} data-testid="boss-life">
            <i style={{ transform: `scaleX(${boss.hp / boss.hpMax})` }} />
            <u style={{ left: '70%' }} />
            <u style={{ left: '30%' }} />
            <span>
              {fight.phase === 2 && <Icon name="shield" size={13} />} {boss.hp} / {boss.hpMax}
            </span>
          </div>
          <div className="boss-clocks">
            <Countdown icon="hourglass" label="Enrage" left={ms(fight.enragesAt) - now} whole={ENRAGE_MS} alarm={30_000} />
            {breath !== undefined && <Countdown icon="flame" label="Fire" left={breath} whole={BREATH_MS} alarm={3_000} />}
          </div>
          {fight.phase === 2 ? <Minions world={world} /> : <p className="boss-hint">{HINTS[fight.phase - 1]}</p>}
          <Raid world={world} />
        </div>
      )}
    </Panel>
  );
}

function Asleep({ world, now }: { world: World; now: number }) {
  const wakes = world.lair?.wakesAt;
  const left = wakes ? ms(wakes) - now : 0;
  return (
    <div className="boss-asleep" data-testid="boss-asleep">
      <svg viewBox="0 0 120 64" width="120" height="64" aria-hidden>
        <path d="M8 54c10-26 34-34 58-30 6-10 18-14 30-10l14 8-9 4 3 7-12 3c-5 7-14 8-22 6-8 10-30 14-62 12z" className="dragon-body" />
        <path d="M30 40c6-8 16-12 26-12M44 46c6-6 14-9 22-9M92 23l5 2" className="dragon-line" />
        <path d="M8 54c-4 2-6 1-7-3" className="dragon-line" />
        <path className="breath-wisp" d="M112 26c3-2 5 0 6-3" />
      </svg>
      <div>
        <p>It sleeps on its hoard and wakes in</p>
        <strong className="big-clock">{clockText(left)}</strong>
        <p className="muted">{OUTCOMES[world.lair?.lastOutcome ?? ''] ?? 'Nobody has fought it yet.'}</p>
      </div>
    </div>
  );
}

interface CountdownProps {
  icon: 'hourglass' | 'flame';
  label: string;
  left: number;
  whole: number;
  alarm: number;
}

function Countdown({ icon, label, left, whole, alarm }: CountdownProps) {
  return (
    <div className={`countdown countdown-${icon} ${left < alarm ? 'is-near' : ''}`} data-testid={label.toLowerCase()}>
      <Icon name={icon} size={15} />
      <span>{label}</span>
      <time>{clockText(left)}</time>
      <i style={{ transform: `scaleX(${Math.max(0, Math.min(1, left / whole))})` }} />
    </div>
  );
}

function Minions({ world }: { world: World }) {
  const { intend } = useActions();
  const minions = [...world.characters.values()].filter((who) => kindOf(world, who) === 'minion');
  return (
    <div className="minions" data-testid="minions">
      {minions.map((minion) => (
        <button key={minion.id} type="button" className="minion" onClick={() => intend({ kind: 'attack', target: minion.id })}>
          <Icon name="imp" size={16} />
          <span>{capital(minion.name.replace('the ', ''))}</span>
          <i style={{ transform: `scaleX(${minion.hp / minion.hpMax})` }} />
        </button>
      ))}
      {minions.length === 1 && <span className="minion is-dead">One has fallen</span>}
    </div>
  );
}

function Raid({ world }: { world: World }) {
  const { intend, intent } = useActions();
  const members = world.raid
    .map((row) => world.characters.get(row.hero))
    .filter((who): who is Character => who !== undefined)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const me = world.me;
  const target = raidTarget(world);
  const fighting = intent?.kind === 'attack' && target !== undefined;
  return (
    <div className="raid">
      <ul aria-label="The raid">
        {members.slice(0, 6).map((who) => (
          <li key={who.id} className={who.hp === 0 ? 'is-down' : ''} title={`${who.name}: ${who.hp} of ${who.hpMax}`}>
            <span>{who.id === me?.id ? 'You' : who.name.split(' ')[0]}</span>
            <i>
              <i style={{ transform: `scaleX(${who.hp / who.hpMax})` }} />
            </i>
          </li>
        ))}
        {members.length > 6 && <li className="more">+{members.length - 6}</li>}
        {members.length === 0 && <li className="more">The raid gathers</li>}
      </ul>
      <button
        type="button"
        className={`button button-ember ${fighting ? 'is-active' : ''}`}
        disabled={me === undefined || me.hp === 0}
        onClick={() => target !== undefined && intend({ kind: 'attack', target })}
        data-testid="join-fight"
      >
        <Icon name="sword" size={16} /> {fighting ? 'Fighting' : 'Fight'}
      </button>
    </div>
  );
}
