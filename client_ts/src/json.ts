/**
 * JSON as the engine writes and reads it: whole numbers of any size. `JSON.parse` would round those beyond 2^53; here
 * they become `bigint`, and a `bigint` is written as a number. Pure functions.
 */

const MARK = '\u0000';
/** Strings and numbers of a JSON text. Strings are matched so that digits inside them are left alone. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON; whole numbers beyond ±(2^53 - 1) become `bigint`. Throws `SyntaxError`. */
export function parseJson(text: string): unknown {
  let marked = false;
  const safe = text.replace(TOKEN, (token) => {
    if (token.startsWith('"')) {
      // A string of the game's own that begins like a mark gets one more.
      return token.startsWith('"\\u0000') ? `"\\u0000${token.slice(1)}` : token;
    }
    if (token.length < 16 || /[.eE]/.test(token) || Number.isSafeInteger(Number(token))) {
      return token;
    }
    marked = true;
    return `"\\u0000${token}"`;
  });
  if (!marked && safe === text) {
    return JSON.parse(text);
  }
  return JSON.parse(safe, (_key, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) {
      return value;
    }
    const rest = value.slice(1);
    return rest.startsWith(MARK) ? rest : BigInt(rest);
  });
}

/** Writes JSON, with each `bigint` as a number. Members that are `undefined` are left out. */
export function writeJson(value: unknown): string {
  if (typeof value === 'bigint') {
    return String(value);
  }
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value) ?? 'null';
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return writeJson(value.toJSON());
  }
  if (Array.isArray(value)) {
    return `[${value.map(writeJson).join(',')}]`;
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => `${JSON.stringify(key)}:${writeJson(member)}`);
  return `{${members.join(',')}}`;
}
