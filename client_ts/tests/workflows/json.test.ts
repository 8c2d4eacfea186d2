// JSON with whole numbers of any size.
import { parseJson, writeJson } from 'gamedb-client';
import { expect, test } from 'vitest';

test.each([
  ['9007199254740991', 9007199254740991],
  ['9007199254740993', 9007199254740993n],
  ['-9223372036854775808', -(2n ** 63n)],
  ['[18446744073709551615, 1.5e300, 0.1234567890123456789]', [2n ** 64n - 1n, 1.5e300, 0.12345678901234568]],
  ['{"a": {"b": 12345678901234567890}}', { a: { b: 12345678901234567890n } }],
  ['"12345678901234567890"', '12345678901234567890'],
  [String.raw`["\"12345678901234567890", 12345678901234567890]`, ['"12345678901234567890', 12345678901234567890n]],
  [String.raw`["\u00005", 12345678901234567890]`, ['\u00005', 12345678901234567890n]],
  [String.raw`["\u0000\u0000x"]`, ['\u0000\u0000x']],
  ['{"12345678901234567890": 12345678901234567890}', { '12345678901234567890': 12345678901234567890n }],
  [String.raw`{"\u0000k" : {"k": "\u0000"}, "n": 12345678901234567890}`, { '\0k': { k: '\0' }, n: 12345678901234567890n }],
  ['null', null],
])('%s is read exactly', (text, value) => {
  expect(parseJson(text)).toEqual(value);
});

test.each([
  [{ n: 2n ** 70n, list: [1, 2n], left: undefined }, '{"n":1180591620717411303424,"list":[1,2]}'],
  ['"a\u0000"', String.raw`"\"a\u0000\""`],
  [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  [{ far: [Infinity, -Infinity, NaN, 0.5] }, '{"far":["inf","-inf","nan",0.5]}'],
  [[undefined, null, true], '[null,null,true]'],
])('%o is written', (value, text) => {
  expect(writeJson(value)).toBe(text);
});

test('text that is no JSON is refused', () => {
  expect(() => parseJson('{12345678901234567890')).toThrow(SyntaxError);
});
