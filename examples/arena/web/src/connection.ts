// How the page reaches its server: the origin that it came from, with the token of the last visit.

import { DbConnection } from './bindings';

const DATABASE = 'arena';
const TOKEN = 'arena.token';

function remembered(): string | undefined {
  // `?guest` is somebody else, for as long as the tab lives: two players in one browser.
  const store = isGuest ? sessionStorage : localStorage;
  return store.getItem(TOKEN) ?? undefined;
}

const isGuest = new URLSearchParams(location.search).has('guest');

function remember(token: string | null): void {
  const store = isGuest ? sessionStorage : localStorage;
  if (token === null) store.removeItem(TOKEN);
  else store.setItem(TOKEN, token);
}

export const builder = DbConnection.builder()
  .withUri(location.origin.replace(/^http/, 'ws'))
  .withDatabaseName(DATABASE)
  .withCompression('none')
  .withToken(remembered())
  .onConnect((_connection, _identity, token) => remember(token))
  .onConnectError((_context, error) => {
    // A server with new keys (its data were deleted) does not know the token: begin anew as somebody else.
    if (/verify token/i.test(error.message) && remembered() !== undefined) {
      remember(null);
      location.reload();
    }
  });
