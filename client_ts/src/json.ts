/**
 * JSON as the engine writes and reads it: whole numbers of any size. `JSON.parse` would round those beyond 2^53; here
 * they become `bigint`, and a `bigint` is written as a number. Pure functions.
 */

/** What a whole number beyond 2^53 has at least; JSON without it is parsed as ever. */
const MANY_DIGITS = /\d{16}/;
const MARK = '\u0000';
/** Strings and numbers of a JSON text. Strings are matched so that digits inside them are left alone. */
const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON; whole numbers beyond ±(2^53 - 1) become `bigint`. Throws `SyntaxError`. */
export function parseJson(text: string): unknown {
  if (!MANY_DIGITS.test(text)) {
    return JSON.parse(text);
  }
  // Large numbers become strings with a mark; a string of the game's own that begins like one gets a mark more.
  const marked = text.replace(TOKEN, (token: string, colon: string | undefined) => {
    if (token.startsWith('"')) {
      return colon === undefined && token.startsWith('"\\u0000') ? `"\\u0000${token.slice(1)}` : token;
    }
    const isLarge = token.length >= 16 && !/[.eE]/.test(token) && !Number.isSafeInteger(Number(token));
    return isLarge ? `"\\u0000${token}"` : token;
  });
  return JSON.parse(marked, (_key, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) {
      return value;
    }
    const rest = value.slice(1);
    return rest.startsWith(MARK) ? rest : BigInt(rest);
  });
}

/**
 * Writes JSON, with each `bigint` as a number, and `inf`, `-inf` and `nan` as the engine has them. Members that are
 * `undefined` are left out.
 */
export function writeJson(value: unknown): string {
  if (typeof value === 'bigint') {
    return String(value);
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return Number.isNaN(value) ? '"nan"' : value > 0 ? '"inf"' : '"-inf"';
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
