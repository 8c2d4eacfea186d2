import { useEffect, useRef, useState } from 'react';
import { SpacetimeDBProvider, useSpacetimeDB } from 'spacetimedb/react';
import { ActionsProvider } from './act';
import type { DbConnection } from './bindings';
import { builder } from './connection';
import { MapView } from './map/MapView';
import { AuctionPanel } from './panels/AuctionPanel';
import { BossPanel } from './panels/BossPanel';
import { HeroFoot, HeroPanel } from './panels/HeroPanel';
import { TalkPanel } from './panels/TalkPanel';
import { TopBar } from './panels/TopBar';
import { ToastProvider, useToast } from './toasts';
import { Icon, type IconName } from './ui/icons';
import { useWorld, WorldProvider } from './world';

export function App() {
  return (
    <SpacetimeDBProvider connectionBuilder={builder}>
      <ToastProvider>
        <WorldProvider>
          <ActionsProvider>
            <Arena />
          </ActionsProvider>
        </WorldProvider>
      </ToastProvider>
    </SpacetimeDBProvider>
  );
}

type View = 'map' | 'boss' | 'market' | 'talk';

const VIEWS: { id: View; icon: IconName; text: string }[] = [
  { id: 'map', icon: 'map', text: 'Map' },
  { id: 'boss', icon: 'dragon', text: 'Dragon' },
  { id: 'market', icon: 'gavel', text: 'Market' },
  { id: 'talk', icon: 'chat', text: 'Talk' },
];

function Arena() {
  const world = useWorld();
  const [view, setView] = useState<View>('map');
  const refused = useEntrance();
  useNotices();
  return (
    <div className={`arena view-${view} ${world.live ? '' : 'is-cut-off'}`} data-testid="arena" data-live={world.live}>
      <TopBar />
      {world.known ? (
        <main>
          <div className="stage">
            <MapView />
            <HeroPanel />
          </div>
          <aside>
            <BossPanel />
            <AuctionPanel />
            <TalkPanel />
            <HeroFoot />
          </aside>
        </main>
      ) : (
        <Opening refused={refused} />
      )}
      {world.known && !world.live && (
        <div className="cut-off" role="status" data-testid="cut-off">
          <i className="spinner" />
          <span>The connection is lost. Everything here goes on without you; you are back in a moment.</span>
        </div>
      )}
      <nav className="views" aria-label="Views">
        {VIEWS.map(({ id, icon, text }) => (
          <button key={id} type="button" aria-pressed={view === id} onClick={() => setView(id)} data-testid={`view-${id}`}>
            <Icon name={icon} size={21} />
            <span>{text}</span>
            {id === 'boss' && world.encounter && <i className="dot dot-ember" />}
            {id === 'market' && world.lots.some((lot) => lot.leader !== undefined && lot.leader === world.me?.id) && (
              <i className="dot dot-gold" />
            )}
          </button>
        ))}
      </nav>
    </div>
  );
}

/** Who connects does not play yet: each connection enters by itself. Gives why the arena did not let it in. */
function useEntrance(): string | null {
  const { isActive, getConnection } = useSpacetimeDB();
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    const connection = isActive ? (getConnection() as DbConnection | null) : null;
    connection?.reducers.enter({}).then(
      () => setRefused(null),
      (error: Error) => setRefused(error.message),
    );
  }, [isActive, getConnection]);
  return refused;
}

function Opening({ refused }: { refused: string | null }) {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 3000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="opening" data-testid="opening">
      <svg viewBox="0 0 32 32" width="92" height="92" aria-hidden>
        <path className="blade" d="M7 25 22 10l3-4-4 3L6 24z" />
        <path className="blade blade-late" d="M25 25 10 10 7 6l4 3 15 15z" />
      </svg>
      <p>{refused !== null ? `You cannot enter: ${refused}.` : slow ? 'The server does not answer yet. Trying again.' : 'Entering the arena'}</p>
    </div>
  );
}

/** What the server tells this player alone: outbid, sold, healed. */
function useNotices() {
  const world = useWorld();
  const toast = useToast();
  const heard = useRef<bigint | null>(null);
  useEffect(() => {
    const me = world.me?.id;
    const newest = world.notices.at(-1)?.id ?? 0n;
    if (!world.live || me === undefined) return;
    if (heard.current !== null) {
      for (const line of world.notices) {
        if (line.id > heard.current) {
          toast(/outbid|bid|buy|reserve/i.test(line.text) ? 'gold' : 'info', line.text);
        }
      }
    }
    heard.current = newest;
  }, [world.live, world.notices, world.me?.id, toast]);
}
