import { useSyncExternalStore } from 'react';

const query = window.matchMedia('(max-width: 820px)');

function subscribe(changed: () => void): () => void {
  query.addEventListener('change', changed);
  return () => query.removeEventListener('change', changed);
}

/** Whether the screen is a phone's: then the panels are tabs. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
