// Where one is: `#/DATABASE/PAGE/ITEM?filter=...`. A link to any place can be kept and sent; it holds no token.

import { useSyncExternalStore } from 'react';

export interface Route {
  database: string;
  page: string;
  item: string | null;
  query: URLSearchParams;
}

export function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [database = '', page = '', ...item] = path.split('/').map(decoded);
  return { database, page, item: item.length ? item.join('/') : null, query: new URLSearchParams(query) };
}

/** What no page has written may not be decodable; then it is what it says. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function href(database: string, page: string, item: string | number | bigint | null = null, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  const parts = [database, page, ...(item === null ? [] : [String(item)])].map(encodeURIComponent);
  return `#/${parts.join('/')}${search ? `?${search}` : ''}`;
}

export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(
    (listener) => {
      window.addEventListener('hashchange', listener);
      return () => window.removeEventListener('hashchange', listener);
    },
    () => location.hash,
  );
  return readRoute(hash);
}
