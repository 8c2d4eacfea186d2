import { useActions } from '../act';
import type { Character } from '../bindings/types';
import { clockText, useNow } from '../clock';
import { Icon } from '../ui/icons';
import { capital, kindOf, ms, useWorld, type World } from '../world';
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
  const now = useNow(250);
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
          {lair.fights > 0 ? `Raids won: ${lair.won} of ${lair.fights}` : fight && 'The first raid'}
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
          <Portrait burning={fight.phase === 3} />
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
      <Sleeper />
      <div>
        <p>It sleeps on its hoard and wakes in</p>
        <strong className="big-clock">{clockText(left)}</strong>
        <p className="muted">{OUTCOMES[world.lair?.lastOutcome ?? ''] ?? 'Nobody has fought it yet.'}</p>
      </div>
    </div>
  );
}

function Sleeper() {
  return (
    <svg className="sleeper" viewBox="0 0 168 96" width="150" height="86" aria-hidden>
      <ellipse cx="84" cy="86" rx="80" ry="9" className="hoard" />
      <path d="M20 84l8-6 8 6zM130 86l7-6 9 6zM60 88l6-5 8 5z" className="hoard-coin" />
      <path d="M16 82C8 54 34 32 68 32c36 0 58 20 56 44 0 6-6 10-16 10H34c-10 0-16-1-18-4z" className="dragon-body" />
      <path d="M30 50l-1-9 9 4 1-10 10 6 3-10 9 7 5-9 8 8 7-7 6 9 9-4 2 10 8-1-1 9" className="dragon-spines" />
      <path d="M52 78c-2-26 10-48 38-62-3 10-1 18 5 24 9-3 18-1 25 6-10 1-16 6-17 14-12 2-20 8-24 18z" className="dragon-wing" />
      <path d="M90 16c-4 22-14 42-27 60M95 40c-8 12-16 24-24 34M120 46c-16 4-30 14-38 28" className="dragon-line" />
      <path d="M84 84c2-16 18-25 38-23 10 0 22 5 29 10 5 4 3 9-3 10l-26 4c-14 2-30 2-38-1z" className="dragon-head" />
      <path d="M112 62c-2-9-9-13-17-14 4 5 6 10 8 15M124 61c1-9-4-15-11-18 2 6 4 12 4 18" className="dragon-horn" />
      <path d="M124 70c3 3 8 3 11 0M146 73l2 1M108 82c14 2 28 0 40-4" className="dragon-line" />
      <path d="M16 82C6 84 0 76 4 68c3-6 10-4 9 2" className="dragon-tail" />
      <path className="breath-wisp" d="M156 70c4-2 6 1 9-2" />
    </svg>
  );
}

/** Shown where there is room for it. */
function Portrait({ burning }: { burning: boolean }) {
  return (
    <svg className={`portrait ${burning ? 'is-fiery' : ''}`} viewBox="0 0 200 140" aria-hidden>
      <circle className="portrait-glow" cx="100" cy="72" r="66" />
      <path d="M72 40C50 34 40 20 40 2c8 14 20 22 40 26zM128 40c22-6 32-20 32-38-8 14-20 22-40 26z" className="dragon-horn" />
      <path d="M60 52 34 44l14 16-22 4 22 10-14 14 28-6zM140 52l26-8-14 16 22 4-22 10 14 14-28-6z" className="dragon-spines" />
      <path d="M100 132 80 106 64 80 58 50l18-18 24-6 24 6 18 18-6 30-16 26z" className="dragon-head" />
      <path d="M100 26l24 6 18 18-6 30-16 26-20 26z" className="dragon-shade" />
      <path d="M88 34l12-18 12 18-12 10z" className="dragon-spines" />
      <path d="M66 56l28 12c-2 8-18 8-24 0zM134 56l-28 12c2 8 18 8 24 0z" className="dragon-eye" />
      <path d="M62 50l34 14M138 50l-34 14M84 84l16-6 16 6M82 104c10 8 26 8 36 0M91 94l4 3M109 94l-4 3" className="dragon-line" />
      <path d="M84 106l4 9 4-7M116 106l-4 9-4-7" className="dragon-tooth" />
    </svg>
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
        <button key={minion.id} type="button" className="minion" onClick={() => intend({ kind: 'raid' })}>
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
  const fighting = intent?.kind === 'raid';
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
        onClick={() => intend({ kind: 'raid' })}
        data-testid="join-fight"
      >
        <Icon name="sword" size={16} /> {fighting ? 'Fighting' : 'Fight'}
      </button>
    </div>
  );
}
