// What people say, what the herald says, and what the workflows do.

import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useActions } from '../act';
import type { Workflow, WorkflowEvent } from '../bindings/types';
import { Icon, type IconName } from '../ui/icons';
import { ms, nameOf, stateOf, stepOf, thing, useWorld, type World } from '../world';
import { Empty } from './Panel';

type Tab = 'chat' | 'herald' | 'workflows';

const TABS: { id: Tab; icon: IconName; text: string }[] = [
  { id: 'chat', icon: 'chat', text: 'Chat' },
  { id: 'herald', icon: 'horn', text: 'Herald' },
  { id: 'workflows', icon: 'gear', text: 'Workflows' },
];

export function TalkPanel() {
  const world = useWorld();
  const [tab, setTab] = useState<Tab>('chat');
  const seen = useRef(0n);
  const newest = world.lines.at(-1)?.id ?? 0n;
  useEffect(() => {
    if (tab === 'chat') seen.current = newest;
  }, [tab, newest]);
  return (
    <section className={`panel talk talk-${tab}`} aria-label="Talk and news">
      <div className="tabs" role="tablist">
        {TABS.map(({ id, icon, text }) => (
          <button key={id} type="button" role="tab" aria-selected={tab === id} onClick={() => setTab(id)} data-testid={`tab-${id}`}>
            <Icon name={icon} size={15} /> {text}
          </button>
        ))}
      </div>
      {tab === 'chat' && <Chat world={world} />}
      {tab === 'herald' && <Herald world={world} />}
      {tab === 'workflows' && <Feed world={world} />}
    </section>
  );
}

/** A list that stays at its end as long as one does not scroll up. */
function Scroll({ children, count, testId }: { children: ReactNode; count: unknown; testId: string }) {
  const node = useRef<HTMLOListElement>(null);
  const stuck = useRef(true);
  useLayoutEffect(() => {
    if (stuck.current && node.current) node.current.scrollTop = node.current.scrollHeight;
  }, [count]);
  return (
    <ol
      className="lines"
      ref={node}
      data-testid={testId}
      onScroll={(event) => {
        const list = event.currentTarget;
        stuck.current = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
      }}
    >
      {children}
    </ol>
  );
}

function Chat({ world }: { world: World }) {
  const { call } = useActions();
  const [text, setText] = useState('');
  const lines = world.lines.slice(-60);
  return (
    <>
      <Scroll count={lines.at(-1)?.id} testId="chat">
        {lines.length === 0 && (
          <li>
            <Empty icon="chat">It is quiet. Say something.</Empty>
          </li>
        )}
        {lines.map((line) => (
          <li key={line.id} className={line.authorId === world.me?.id ? 'is-mine' : ''}>
            <b style={{ color: hue(line.authorId) }}>{line.author}</b> {line.text}
          </li>
        ))}
      </Scroll>
      <form
        className="say"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === '') return;
          void call((r) => r.say({ text })).then((done) => done && setText(''));
        }}
      >
        <input value={text} maxLength={160} placeholder="Say something" aria-label="Say something" onChange={(event) => setText(event.target.value)} />
        <button type="submit" className="button" aria-label="Send">
          <Icon name="chat" size={16} />
        </button>
      </form>
    </>
  );
}

function hue(id: bigint): string {
  return `hsl(${Number((id * 67n) % 360n)} 45% 72%)`;
}

function Herald({ world }: { world: World }) {
  const news = world.news.slice(-70);
  return (
    <Scroll count={news.at(-1)?.id} testId="herald">
      {news.map((line) => (
        <li key={line.id} className={/dragon|boss|Phase|raid|Victory|fire/i.test(line.text) ? 'is-loud' : ''}>
          <time>{hour(ms(line.at))}</time> {line.text}
        </li>
      ))}
    </Scroll>
  );
}

function hour(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

const ICONS: Record<string, IconName> = {
  auction: 'gavel',
  boss_fight: 'dragon',
  boss_add: 'imp',
  buff: 'flask',
  combat: 'sword',
  day_night: 'sun',
  lair: 'dragon',
  patrol: 'helm',
  quest: 'scroll',
  respawn: 'wolf',
};

function Feed({ world }: { world: World }) {
  const rows = useMemo(() => {
    const byId = new Map(world.workflows.map((row) => [row.id, row]));
    return world.events
      .map((event) => ({ event, row: byId.get(event.workflowId) }))
      .filter((entry): entry is { event: WorkflowEvent; row: Workflow } => entry.row !== undefined)
      .filter(({ event }) => event.detail !== 'HealthChanged()')
      .slice(-60);
  }, [world.events, world.workflows]);
  return (
    <Scroll count={rows.at(-1)?.event.id} testId="feed">
      {rows.map(({ event, row }) => (
        <li key={event.id} className={`feed feed-${event.kind}`} title={[event.detail, event.step].join('\n').trim()}>
          <Icon name={ICONS[row.workflowType] ?? 'gear'} size={15} />
          <span>
            <b>{row.workflowType.replace('_', ' ')}</b> {subject(world, row)} <em>{happened(event)}</em>
            {event.step !== '' && <code>{stepOf(event.step).wait}</code>}
          </span>
        </li>
      ))}
    </Scroll>
  );
}

/** Whom or what a workflow is about. */
function subject(world: World, row: Workflow): string {
  if (row.entityId === undefined) {
    const name = stateOf(row).init?.name;
    return typeof name === 'string' ? `of ${name}` : '';
  }
  if (row.workflowType === 'auction') return `of a ${thing(world, row.entityId)}`;
  return `of ${nameOf(world, row.entityId)}`;
}

function happened(event: WorkflowEvent): string {
  if (event.kind === 'started') return 'begins';
  if (event.kind === 'completed') return 'is done';
  if (event.kind !== 'step') return event.kind;
  const timer = /^<\w+\.\w+: '(\w+)'>$/.exec(event.detail);
  if (timer) return `timer ${timer[1]!.replace('_', ' ')}`;
  return event.detail === '' ? 'goes on' : `got ${event.detail.slice(0, 48)}`;
}
