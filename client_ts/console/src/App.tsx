// Who is here, which database they look at, and the frame around every page.

import { useCallback, useEffect, useState } from 'react';
import type { Description } from './live/description';
import { DatabaseProvider, useLinkState, type Database } from './live/hooks';
import { Link } from './live/link';
import { Metrics } from './live/metrics';
import { readSchema } from './module/schema';
import { Login } from './pages/Login';
import { Page, PAGES } from './pages/Page';
import { go, href, useRoute } from './route';
import { Api, rememberedToken, rememberToken, Refused, type DatabaseInfo } from './session';
import { Icon } from './ui/icons';
import { Guard } from './ui/Guard';
import { Dialog, Empty, isTyping, Mistake, useKey, Waiting } from './ui/parts';
import { Toasts } from './ui/toasts';

type Access = { state: 'asking' } | { state: 'out'; why: string | null } | { state: 'in'; api: Api; databases: DatabaseInfo[]; version: string };

export function App() {
  const [access, setAccess] = useState<Access>({ state: 'asking' });

  const leave = useCallback((why: string | null): void => {
    rememberToken(null);
    setAccess({ state: 'out', why });
  }, []);

  const enter = useCallback(async (token: string): Promise<void> => {
    try {
      const api = new Api(token, leave);
      const { databases, version } = await api.databases();
      rememberToken(token);
      setAccess({ state: 'in', api, databases, version });
    } catch (error) {
      if (error instanceof Refused) leave(error.message);
      else setAccess({ state: 'out', why: `The server does not answer: ${(error as Error).message}` });
    }
  }, [leave]);

  useEffect(() => {
    const begin = (): void => {
      const token = rememberedToken();
      if (token) void enter(token);
      else setAccess((now) => (now.state === 'asking' ? { state: 'out', why: null } : now));
    };
    begin();
    const another = (): void => {
      if (location.hash.startsWith('#token=')) begin();
    };
    window.addEventListener('hashchange', another);
    return () => window.removeEventListener('hashchange', another);
  }, [enter]);

  return (
    <>
      {access.state === 'asking' && <Waiting>Signing in</Waiting>}
      {access.state === 'out' && <Login why={access.why} enter={enter} />}
      {access.state === 'in' && <Inside {...access} leave={() => leave(null)} />}
      <Toasts />
    </>
  );
}

function Inside({ api, databases, version, leave }: { api: Api; databases: DatabaseInfo[]; version: string; leave: () => void }) {
  const route = useRoute();
  const name = databases.some((one) => one.name === route.database) ? route.database : databases[0]!.name;
  const [database, setDatabase] = useState<Database | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [changed, setChanged] = useState(0);

  useEffect(() => {
    let closed = false;
    let opened: Database | null = null;
    setError(null);
    Promise.all([api.json<unknown>(`/v1/database/${name}/schema?version=10`), api.json<Description>(`/v1/database/${name}/describe`)])
      .then(([json, description]) => {
        if (closed) return;
        const schema = readSchema(json);
        const link = new Link(name, schema, api.token);
        opened = { name, api, schema, description, link, metrics: new Metrics(api, name) };
        setDatabase(opened);
      })
      .catch((problem: Error) => {
        if (!closed && !(problem instanceof Refused)) setError(problem.message);
      });
    return () => {
      closed = true;
      opened?.link.close();
      opened?.metrics.close();
    };
  }, [api, name, changed]);

  useModuleChanges(database, () => setChanged((count) => count + 1));

  return (
    <div className="shell">
      <Side databases={databases} name={name} page={route.page} database={database} version={version} leave={leave} />
      <main className="main">
        <LostLine database={database} />
        {error !== null ? (
          <div className="page-error">
            <Mistake title={`The database ${name} cannot be shown`}>{error}</Mistake>
            <button className="button" onClick={() => setChanged(changed + 1)}>
              Try again
            </button>
          </div>
        ) : route.database !== '' && route.database !== name ? (
          <Empty icon="server" title={`There is no database ${route.database} here`}>
            You operate <a href={href(name, route.page || PAGES[0]!.path)}>{name}</a>
            {databases.length > 1 && ' and others'}.
          </Empty>
        ) : database?.name === name ? (
          <DatabaseProvider value={database}>
            <Guard place={location.hash}>
              <Page route={{ ...route, database: name }} key={`${name}/${route.page}`} />
            </Guard>
          </DatabaseProvider>
        ) : (
          <Waiting>Opening {name}</Waiting>
        )}
      </main>
    </div>
  );
}

/** A server that comes back may have other code: then everything is read again. */
function useModuleChanges(database: Database | null, changed: () => void): void {
  const state = useLinkState(database?.link ?? null);
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (state === 'lost') setWasLost(true);
    if (state !== 'live' || !wasLost || !database) return;
    setWasLost(false);
    const path = `/v1/database/${database.name}`;
    Promise.all([database.api.json<unknown>(`${path}/schema?version=10`), database.api.json<Description>(`${path}/describe`)])
      .then(([json, description]) => {
        const same = JSON.stringify(readSchema(json)) === JSON.stringify(database.schema);
        if (!same || JSON.stringify(description) !== JSON.stringify(database.description)) changed();
      })
      .catch(() => undefined);
    // only when the connection comes back
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [state, wasLost]);
}

function LostLine({ database }: { database: Database | null }) {
  const state = useLinkState(database?.link ?? null);
  if (state !== 'lost') return null;
  return (
    <div className="lost" role="alert" data-testid="lost">
      <i className="spinner" /> The connection to the server is lost. What you see is how it was; trying again.
      {database?.link.problem && <span className="lost-why">{database.link.problem}</span>}
    </div>
  );
}

interface SideProps {
  databases: DatabaseInfo[];
  name: string;
  page: string;
  database: Database | null;
  version: string;
  leave: () => void;
}

function Side({ databases, name, page, database, version, leave }: SideProps) {
  const state = useLinkState(database?.link ?? null);
  const [theme, setTheme] = useTheme();
  const [help, setHelp] = useState(false);
  const [awaited, setAwaited] = useState(false);
  const pages = PAGES.filter(({ path }) => path !== 'workflows' || !database || database.description.workflows);
  const current = pages.some((one) => one.path === page) ? page : pages[0]!.path;

  useEffect(() => {
    document.title = `${PAGES.find((one) => one.path === current)?.title ?? 'Console'} · ${name}`;
  }, [current, name]);

  useKey((event) => {
    if (isTyping(event)) return;
    if (awaited) {
      setAwaited(false);
      const found = pages.find((one) => one.key === event.key);
      if (found) go(href(name, found.path));
      if (event.key === '?') setHelp(true);
    } else if (event.key === 'g') setAwaited(true);
    else if (event.key === '?') setHelp(true);
    else if (event.key === '/') {
      const search = document.querySelector<HTMLInputElement>('[data-search]');
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    }
  });

  return (
    <nav className="side" aria-label="Pages">
      <div className="side-brand">
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 5.5 8.5 10 4 14.5M10.5 15H16" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" />
        </svg>
        {databases.length > 1 ? (
          <select aria-label="Database" value={name} onChange={(event) => go(href(event.target.value, current))}>
            {databases.map((one) => (
              <option key={one.identity}>{one.name}</option>
            ))}
          </select>
        ) : (
          <h1>{name}</h1>
        )}
      </div>
      <ul className="side-pages">
        {pages.map((one) => (
          <li key={one.path}>
            <a href={href(name, one.path)} aria-current={one.path === current ? 'page' : undefined} title={`${one.title} (g ${one.key})`}>
              <Icon name={one.icon} />
              <span>{one.title}</span>
            </a>
          </li>
        ))}
      </ul>
      <div className="side-foot">
        <span className={`link-state is-${state}`} data-testid="link" title={`gamedb ${version}`}>
          <i />
          <span>{state === 'live' ? 'Live' : state === 'lost' ? 'Lost' : 'Connecting'}</span>
        </span>
        <button className="icon-button" onClick={() => setHelp(true)} title="Keys (?)" aria-label="Keys">
          <Icon name="keys" />
        </button>
        <button className="icon-button" onClick={() => setTheme(theme === 'dark' ? 'light' : 'dark')} title="Dark or light" aria-label="Dark or light">
          <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
        </button>
        <button className="icon-button" onClick={leave} title="Sign out" aria-label="Sign out">
          <Icon name="out" />
        </button>
      </div>
      {help && (
        <Dialog title="Keys" onClose={() => setHelp(false)}>
          <dl className="keys">
            {[
              ...pages.map((one) => [`g ${one.key}`, one.title]),
              ['/', 'Search or filter'],
              ['↑ ↓', 'Move through a list'],
              ['Enter', 'Open'],
              ['Esc', 'Back to the list'],
              ['n', 'In the list of workflows: start one'],
              ['s', 'On a workflow: send a signal'],
              ['Ctrl Enter', 'Run the SQL'],
              ['?', 'This'],
            ].map(([key, meaning]) => (
              <div key={key}>
                <dt>
                  {key!.split(' ').map((one) => (
                    <kbd key={one}>{one}</kbd>
                  ))}
                </dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </nav>
  );
}

type Theme = 'dark' | 'light';

/** As the system has it, until somebody says otherwise. */
function useTheme(): [Theme, (theme: Theme) => void] {
  const [chosen, setChosen] = useState<Theme | null>(() => localStorage.getItem('gamedb.console.theme') as Theme | null);
  const [system, setSystem] = useState<Theme>(() => (matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark'));
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: light)');
    const listen = (): void => setSystem(media.matches ? 'light' : 'dark');
    media.addEventListener('change', listen);
    return () => media.removeEventListener('change', listen);
  }, []);
  const theme = chosen ?? system;
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [
    theme,
    (next) => {
      localStorage.setItem('gamedb.console.theme', next);
      setChosen(next);
    },
  ];
}
