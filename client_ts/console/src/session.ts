// Who uses the console, and what it asks of the server's HTTP API.
//
// The token comes in the fragment of the link that `gamedb start` prints, or is typed. It is kept for this tab alone:
// the game's own page may have the same origin, and must not find it.

import { kindOf, type Field, type Schema } from './module/schema';
import { fromSats, parseExact } from './module/values';
import { decoded } from './route';

const TOKEN = 'gamedb.console.token';

/** The server does not know the token, or it operates no database. */
export class Refused extends Error {}

/**
 * Whether no answer came, or broke off: `fetch` and the bodies of its answers throw this. Who asks again and again leaves
 * it to the line above the page to say that the connection is lost.
 */
export const isUnanswered = (error: unknown): boolean => error instanceof TypeError;

export interface DatabaseInfo {
  name: string;
  identity: string;
}

export interface SqlResult {
  columns: Field[];
  rows: unknown[][];
  micros: number;
}

export function rememberedToken(): string | null {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(TOKEN, decoded(found[1]!));
    history.replaceState(null, '', location.pathname); // not in the history, not in a bookmark
  }
  return sessionStorage.getItem(TOKEN);
}

export function rememberToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

export class Api {
  /** `refused` is told why, each time that the server does not take the token (any more). */
  constructor(
    readonly token: string,
    private readonly refused: (why: string) => void,
  ) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new Refused('This is no token: a token has letters, digits, dots, - and _ alone.');
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(path, { ...init, headers: { ...init.headers, Authorization: `Bearer ${this.token}` } });
    if (response.status === 401 || response.status === 403) {
      const why = await response.text();
      this.refused(why);
      throw new Refused(why);
    }
    if (!response.ok && response.status !== 503) throw new Error((await response.text()) || response.statusText);
    return response;
  }

  async databases(): Promise<{ version: string; databases: DatabaseInfo[] }> {
    return (await this.fetch('/v1/databases')).json();
  }

  async json<T>(path: string): Promise<T> {
    return (await this.fetch(path)).json();
  }

  async sql(database: string, query: string, signal?: AbortSignal): Promise<SqlResult> {
    const response = await this.fetch(`/v1/database/${database}/sql`, { method: 'POST', body: query, signal: signal ?? null });
    if (!response.ok) throw new Error(await response.text());
    const [answer] = parseExact(await response.text());
    const columns: Field[] = answer.schema.elements.map((one: { name: { some?: string }; algebraic_type: object }, at: number) => ({
      name: one.name.some ?? `column ${at + 1}`,
      kind: kindOf(one.algebraic_type),
    }));
    const rows = answer.rows.map((row: unknown[]) => row.map((value, at) => fromSats(columns[at]!.kind, value, NO_NAMES)));
    return { columns, rows, micros: answer.total_duration_micros };
  }
}

/** Types in SQL results refer to no names. */
const NO_NAMES: Schema = { types: [], names: new Map(), tables: [], functions: [] };
