import { clockText, useNow } from '../clock';
import { Icon, type IconName } from '../ui/icons';
import { capital, ms, useWorld } from '../world';

const PHASES: Record<string, { icon: IconName; ms: number }> = {
  dawn: { icon: 'rise', ms: 7_000 },
  day: { icon: 'sun', ms: 70_000 },
  dusk: { icon: 'fall', ms: 7_000 },
  night: { icon: 'moon', ms: 35_000 },
};

export function TopBar() {
  const world = useWorld();
  const now = useNow(500);
  const time = world.time;
  const phase = time && PHASES[time.phase];
  const left = time ? ms(time.until) - now : 0;
  const players = [...world.figures.values()].filter((row) => row.role.tag === 'Hero' && row.online && !row.bot).length;
  return (
    <header className="topbar">
      <div className="brand">
        <svg width="30" height="30" viewBox="0 0 32 32" aria-hidden>
          <path d="M7 25 22 10l3-4-4 3L6 24z" fill="var(--gold)" />
          <path d="M25 25 10 10 7 6l4 3 15 15z" fill="var(--gold-deep)" />
          <path d="M9.500 19.500l3 3M22.500 19.500l-3 3" stroke="var(--text)" strokeWidth="2" strokeLinecap="round" />
        </svg>
        <h1>Arena</h1>
      </div>
      {time && phase && (
        <div className="daytime" title={`${capital(time.phase)} for another ${clockText(left)}`} data-testid="daytime">
          <Icon name={phase.icon} size={19} />
          <span>
            Day {time.day}, {time.phase}
          </span>
          <div className="daytime-track">
            <i style={{ transform: `scaleX(${Math.min(1, Math.max(0, 1 - left / phase.ms))})` }} />
          </div>
        </div>
      )}
      <div className="topbar-end">
        <span className="pill pill-players" title="Who is here, without those whom the server plays">
          <Icon name="people" size={16} /> {players} {players === 1 ? 'player' : 'players'}
        </span>
        <span className={`pill pill-link ${world.live ? 'is-live' : 'is-lost'}`} data-testid="link">
          <i /> {world.live ? 'Live' : world.known ? 'Reconnecting' : 'Connecting'}
        </span>
      </div>
    </header>
  );
}
