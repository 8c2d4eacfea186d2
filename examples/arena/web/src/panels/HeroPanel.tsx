// The player's own character: life, buffs, what it can do, and what it carries.

import { useState } from 'react';
import { useActions } from '../act';
import { clockText, useNow } from '../clock';
import { EFFECT_ICONS, Icon, thingIcon, type IconName } from '../ui/icons';
import { apart, capital, kindOf, ms, nameOf, spotOf, stateOf, useWorld, workflowsOf, type World } from '../world';
import type { Character, Effect, Item } from '../bindings/types';
import { useNarrow } from '../ui/narrow';
import { Panel } from './Panel';
import { SellForm } from './SellForm';

const POTIONS = ['strength', 'swiftness', 'healing'] as const;
const LASTS: Record<string, number> = { strength: 60_000, swiftness: 30_000, healing: 20_000, weakness: 40_000 };

export function HeroPanel() {
  const world = useWorld();
  const me = world.me;
  const [selling, setSelling] = useState<bigint | null>(null);
  if (me === undefined) return null;
  const things = world.items.filter((item) => item.ownerId === me.id);
  const item = things.find((row) => row.id === selling);
  return (
    <Panel icon="person" title="Hero" className="hero" note={<Purse world={world} me={me} />}>
      <div className="hero-body">
        <div className="hero-self">
          <Name me={me} />
          <div className="meter meter-life meter-big" data-testid="life">
            <i style={{ transform: `scaleX(${me.hp / me.hpMax})` }} />
            <span>{me.hp === 0 ? 'Fallen' : `${me.hp} / ${me.hpMax}`}</span>
          </div>
          <Bag things={things} onSell={setSelling} />
        </div>
        <Buffs world={world} me={me} />
        <div className="hero-acts">
          <Potions world={world} me={me} />
          <Fight world={world} me={me} />
          <Quest world={world} me={me} />
        </div>
      </div>
      {item && item.holder === undefined && <SellForm item={item} onDone={() => setSelling(null)} />}
    </Panel>
  );
}

/** On a phone, below the dragon and the market: what one needs there of the hero. */
export function HeroFoot() {
  const world = useWorld();
  const me = world.me;
  const [selling, setSelling] = useState<bigint | null>(null);
  const narrow = useNarrow();
  if (me === undefined || !narrow) return null;
  const things = world.items.filter((item) => item.ownerId === me.id);
  const item = things.find((row) => row.id === selling);
  return (
    <section className="panel hero-foot" aria-label="Hero">
      <header className="panel-head">
        <h2>{me.name}</h2>
        <div className="panel-note">
          <Purse world={world} me={me} />
        </div>
      </header>
      <div className="hero-foot-body">
        <div className="meter meter-life meter-big">
          <i style={{ transform: `scaleX(${me.hp / me.hpMax})` }} />
          <span>{me.hp === 0 ? 'Fallen' : `${me.hp} / ${me.hpMax}`}</span>
        </div>
        <div className="for-boss">
          <Buffs world={world} me={me} />
          <Potions world={world} me={me} />
        </div>
        <div className="for-market">
          <p className="muted">Tap a thing to sell it.</p>
          <Bag things={things} onSell={setSelling} />
        </div>
      </div>
      {item && item.holder === undefined && <SellForm item={item} onDone={() => setSelling(null)} />}
    </section>
  );
}

function Purse({ world, me }: { world: World; me: Character }) {
  const held = world.heldGold.filter((row) => row.ownerId === me.id).reduce((sum, row) => sum + row.amount, 0n);
  return (
    <>
      <span className="gold" data-testid="gold" title="Your gold">
        <Icon name="coin" size={16} /> {String(me.gold)}
        {held > 0n && <small title="Set aside for your bids">+{String(held)} in bids</small>}
      </span>
      <span className="stat" title="Strength: what a blow of yours takes">
        <Icon name="sword" size={15} /> {me.strength}
      </span>
    </>
  );
}

function Name({ me }: { me: Character }) {
  const { call } = useActions();
  const [draft, setDraft] = useState<string | null>(null);
  if (draft === null) {
    return (
      <button type="button" className="name" onClick={() => setDraft(me.name)} title="Choose another name">
        {me.name}
      </button>
    );
  }
  return (
    <form
      className="name-form"
      onSubmit={(event) => {
        event.preventDefault();
        void call((r) => r.rename({ name: draft })).then((done) => done && setDraft(null));
      }}
    >
      <input
        autoFocus
        aria-label="Your name"
        value={draft}
        maxLength={16}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && setDraft(null)}
      />
      <button type="submit" className="button button-small">
        Save
      </button>
    </form>
  );
}

function Buffs({ world, me }: { world: World; me: Character }) {
  const now = useNow(200);
  const effects = world.effects.filter((effect) => effect.characterId === me.id);
  return (
    <div className="buffs" data-testid="buffs">
      {effects.length === 0 && <p className="quiet">No potion is at work. Drink one, or wait for Father Bede.</p>}
      {effects.map((effect) => (
        <Buff key={effect.id} effect={effect} now={now} me={me} />
      ))}
    </div>
  );
}

function Buff({ effect, now, me }: { effect: Effect; now: number; me: Character }) {
  const { call } = useActions();
  const left = Math.max(0, ms(effect.until) - now);
  const whole = Math.max(LASTS[effect.kind] ?? 60_000, 1);
  return (
    <div
      className={`buff effect-${effect.kind} ${left < 5000 ? 'is-ending' : ''}`}
      data-testid={`buff-${effect.kind}`}
      data-stacks={effect.stacks}
      data-left={Math.round(left)}
    >
      <i className="buff-left" style={{ transform: `scaleX(${Math.min(1, left / whole)})` }} />
      <Icon name={EFFECT_ICONS[effect.kind] ?? 'flame'} size={16} />
      <span className="buff-name">{capital(effect.kind)}</span>
      <span className="stacks" title={`${effect.stacks} of 5 stacks`}>
        {Array.from({ length: 5 }, (_, n) => (
          <i key={n} className={n < effect.stacks ? 'on' : ''} />
        ))}
      </span>
      <time>{clockText(left)}</time>
      {effect.kind === 'weakness' && (
        <button
          type="button"
          className="link"
          title="Dispel it, for 10 gold"
          onClick={() => void call((r) => r.dispel({ target: me.id, kind: effect.kind }))}
        >
          dispel
        </button>
      )}
    </div>
  );
}

function Potions({ world, me }: { world: World; me: Character }) {
  const { call } = useActions();
  const herbs = world.items.filter((item) => item.ownerId === me.id && item.kind === 'herb').length;
  return (
    <div className="acts" role="group" aria-label="Potions">
      {POTIONS.map((potion) => (
        <button
          key={potion}
          type="button"
          className={`button act effect-${potion}`}
          disabled={me.hp === 0}
          title={herbs > 0 ? `Potion of ${potion}, for a herb` : `Potion of ${potion}, for 5 gold`}
          onClick={() => void call((r) => r.drink({ potion }))}
          data-testid={`drink-${potion}`}
        >
          <Icon name={EFFECT_ICONS[potion]!} size={18} />
          <span>{capital(potion)}</span>
          <small>
            {herbs > 0 ? (
              <>
                <Icon name="herb" size={12} /> 1 of {herbs}
              </>
            ) : (
              <>
                <Icon name="coin" size={12} /> 5
              </>
            )}
          </small>
        </button>
      ))}
    </div>
  );
}

function Fight({ world, me }: { world: World; me: Character }) {
  const { call, intend, intent } = useActions();
  const now = useNow(500);
  const combat = workflowsOf(world, me.id).find((row) => row.workflowType === 'combat');
  if (combat !== undefined) {
    const init = stateOf(combat).init as { defender?: number } | undefined;
    const enemy = init?.defender === undefined ? undefined : BigInt(init.defender);
    return (
      <div className="acts acts-fight" role="group" aria-label="Fight">
        <Act icon="sword" text={`Strike ${nameOf(world, enemy)}`} tone="ember" onClick={() => enemy !== undefined && intend({ kind: 'attack', target: enemy })} />
        <Act icon="shield" text="Defend" onClick={() => void call((r) => r.defend({}))} />
        <Act icon="run" text="Flee" onClick={() => (intend(null), void call((r) => r.flee({})))} />
      </div>
    );
  }
  const here = spotOf(world, me, now);
  const foes = [...world.characters.values()].filter((who) => {
    const kind = kindOf(world, who);
    return (kind === 'wolf' || kind === 'bandit') && who.hp > 0 && world.figures.get(who.id)?.opponent === undefined;
  });
  const foe = foes.sort((a, b) => apart(here, spotOf(world, a, now)) - apart(here, spotOf(world, b, now)))[0];
  const herbs = world.items.filter((item) => item.ownerId === undefined);
  const herb = herbs.sort((a, b) => apart(here, a.at) - apart(here, b.at))[0];
  const boss = world.encounter?.boss;
  return (
    <div className="acts" role="group" aria-label="Actions">
      <Act
        icon="dragon"
        text={boss === undefined ? 'It sleeps' : 'Dragon'}
        tone="ember"
        active={intent?.kind === 'raid'}
        disabled={boss === undefined || me.hp === 0}
        onClick={() => intend({ kind: 'raid' })}
      />
      <Act icon="target" text={foe ? `Hunt ${foe.name.replace('a ', '')}` : 'No foe'} disabled={foe === undefined || me.hp === 0} onClick={() => foe && intend({ kind: 'attack', target: foe.id })} />
      <Act icon="herb" text="Find herb" disabled={herb === undefined || me.hp === 0} onClick={() => herb && intend({ kind: 'pick', item: herb.id })} />
    </div>
  );
}

interface ActProps {
  icon: IconName;
  text: string;
  tone?: string;
  active?: boolean;
  disabled?: boolean;
  onClick: () => void;
}

function Act({ icon, text, tone = '', active = false, disabled = false, onClick }: ActProps) {
  return (
    <button type="button" className={`button act ${tone} ${active ? 'is-active' : ''}`} disabled={disabled} onClick={onClick}>
      <Icon name={icon} size={18} />
      <span>{text}</span>
    </button>
  );
}

/** As it stands in the state of the workflow: one of several kinds is named by `$type`. */
interface Objective {
  name?: string;
  kind?: string;
  place?: { x: number; y: number };
  count: number;
}

function Quest({ world, me }: { world: World; me: Character }) {
  const { call, intend } = useActions();
  const now = useNow(1000);
  const quest = workflowsOf(world, me.id).find((row) => row.workflowType === 'quest');
  const miller = [...world.characters.values()].find((who) => who.name === 'the miller');
  if (quest === undefined) {
    return (
      <button
        type="button"
        className="quest-offer"
        disabled={miller === undefined || me.hp === 0}
        onClick={() => miller && intend({ kind: 'quest', giver: miller.id })}
      >
        <Icon name="scroll" size={16} />
        <span>The miller has work for you</span>
        <b>
          <Icon name="coin" size={13} /> 40
        </b>
      </button>
    );
  }
  const state = stateOf(quest);
  const objectives = ((state.init?.objectives ?? []) as { value: Objective }[]).map(({ value }) => value);
  const progress = (state.progress ?? []) as number[];
  const expires = world.timers.find((timer) => timer.workflowId === quest.id);
  return (
    <div className="quest">
      <header>
        <Icon name="scroll" size={15} />
        <b>The miller's errand</b>
        {expires && <time>{clockText(ms(expires.dueAt) - now)}</time>}
        <button type="button" className="link" onClick={() => void call((r) => r.abandonQuest({}))}>
          give up
        </button>
      </header>
      <ul>
        {objectives.map((objective, n) => {
          const done = Math.min(progress[n] ?? 0, objective.count);
          return (
            <li key={n} className={done >= objective.count ? 'is-done' : ''}>
              <Icon name={done >= objective.count ? 'check' : questIcon(objective)} size={14} />
              {questText(objective)}
              {objective.count > 1 && ` ${done}/${objective.count}`}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function questIcon(objective: Objective): IconName {
  return objective.kind ? 'herb' : objective.place ? 'map' : 'wolf';
}

function questText(objective: Objective): string {
  if (objective.kind) return 'Herbs';
  if (objective.place) return 'Visit the old oak';
  return 'Wolves';
}

function Bag({ things, onSell }: { things: readonly Item[]; onSell: (id: bigint) => void }) {
  return (
    <div className="bag" aria-label="Bag">
      {things.length === 0 && <p className="quiet">Your bag is empty.</p>}
      {things.map((item) => (
        <button
          key={item.id}
          type="button"
          className={`thing ${item.holder !== undefined ? 'is-held' : ''}`}
          title={item.holder !== undefined ? `${capital(item.kind)}: up for auction` : `${capital(item.kind)}: sell it`}
          disabled={item.holder !== undefined}
          onClick={() => onSell(item.id)}
        >
          <Icon name={thingIcon(item.kind)} size={19} />
        </button>
      ))}
    </div>
  );
}
