// The fields above the list that say which workflows it shows; for their status there are buttons, for words the search.

import { useState } from 'react';
import { AGES, spanOf, TIMERS, type Age, type Filter, type NextTimer, type Span } from './filter';

const AGE_NAMES: Record<Age['how'], string> = { older: 'Older than', younger: 'Younger than' };
const TIMER_NAMES: Record<NextTimer['how'], string> = { within: 'Due within', overdue: 'Overdue', hand: 'Fired by hand', none: 'No timer' };
/** What a duration is until another one is typed. */
const FIRST_SPAN = '1h';

interface Props {
  filter: Filter;
  set: (change: Partial<Filter>) => void;
  types: string[];
}

export function FilterFields({ filter, set, types }: Props) {
  const { age, timer } = filter;
  return (
    <>
      <select aria-label="Type" value={filter.type} onChange={(event) => set({ type: event.target.value })}>
        <option value="">All types</option>
        {types.map((type) => (
          <option key={type}>{type}</option>
        ))}
      </select>
      <input aria-label="Entity" className="input-short" placeholder="Entity" inputMode="numeric" value={filter.entity} onChange={(event) => set({ entity: event.target.value.replace(/\D/g, '') })} />
      <span className="relation">
        <select
          aria-label="Age"
          value={age?.how ?? ''}
          onChange={({ target }) => set({ age: target.value === '' ? null : { how: target.value as Age['how'], than: age?.than ?? spanOf(FIRST_SPAN) } })}
        >
          <option value="">Any age</option>
          {AGES.map((how) => (
            <option key={how} value={how}>
              {AGE_NAMES[how]}
            </option>
          ))}
        </select>
        {age && <SpanField label={AGE_NAMES[age.how]} span={age.than} set={(than) => set({ age: { ...age, than } })} />}
      </span>
      <span className="relation">
        <select aria-label="Next timer" value={timer?.how ?? ''} onChange={({ target }) => set({ timer: timerOf(target.value as NextTimer['how'] | '') })}>
          <option value="">Any timer</option>
          {TIMERS.map((how) => (
            <option key={how} value={how}>
              {TIMER_NAMES[how]}
            </option>
          ))}
        </select>
        {timer?.how === 'within' && <SpanField label={TIMER_NAMES.within} span={timer.within} set={(within) => set({ timer: { ...timer, within } })} />}
      </span>
    </>
  );
}

function timerOf(how: NextTimer['how'] | ''): NextTimer | null {
  if (how === '') return null;
  return how === 'within' ? { how, within: spanOf(FIRST_SPAN) } : { how };
}

/** A duration. The filter has the last one that was right, while the field says what is wrong with another. */
function SpanField({ label, span, set }: { label: string; span: Span; set: (span: Span) => void }) {
  const [wrong, setWrong] = useState<{ text: string; why: string } | null>(null);
  const take = (text: string): void => {
    try {
      set(spanOf(text));
      setWrong(null);
    } catch (error) {
      setWrong({ text, why: (error as Error).message });
    }
  };
  return (
    <span className="span-field">
      <input aria-label={label} aria-invalid={wrong !== null} className="input-short" value={wrong?.text ?? span.text} onChange={({ target }) => take(target.value)} />
      {wrong && (
        <span className="field-error" role="alert">
          {wrong.why}
        </span>
      )}
    </span>
  );
}
