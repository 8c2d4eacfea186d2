// What a newcomer can do with the map. Each line goes away when it was done once, and does not come back.

import { useState } from 'react';
import { Icon } from '../ui/icons';

export type Lesson = 'walk' | 'look';

const KEY = 'arena.learned';
const TOUCH = window.matchMedia('(hover: none)').matches;
const TEXTS: Record<Lesson, string> = {
  walk: TOUCH ? 'Tap the ground to walk.' : 'Click the ground to walk.',
  look: TOUCH ? 'Tap somebody to see their workflows.' : 'Point at somebody to see their workflows.',
};
const LESSONS: Lesson[] = ['walk', 'look'];

/** What is still to be learned, and what to call when something of it was done. */
export function useLessons(): [Lesson[], (...done: Lesson[]) => void] {
  const [open, setOpen] = useState<Lesson[]>(() => {
    const learned = localStorage.getItem(KEY)?.split(' ') ?? [];
    return LESSONS.filter((lesson) => !learned.includes(lesson));
  });
  const learn = (...done: Lesson[]) => {
    const left = open.filter((lesson) => !done.includes(lesson));
    if (left.length === open.length) return;
    localStorage.setItem(KEY, LESSONS.filter((lesson) => !left.includes(lesson)).join(' '));
    setOpen(left);
  };
  return [open, learn];
}

export function Hint({ lessons, onClose }: { lessons: Lesson[]; onClose: () => void }) {
  if (lessons.length === 0) return null;
  return (
    <div className="hint" data-testid="hint">
      <p>
        {lessons.map((lesson) => (
          <span key={lesson}>{TEXTS[lesson]}</span>
        ))}
      </p>
      <button
        type="button"
        aria-label="Close the hint"
        onClick={(event) => {
          event.stopPropagation();
          onClose();
        }}
      >
        <Icon name="cross" size={13} />
      </button>
    </div>
  );
}
