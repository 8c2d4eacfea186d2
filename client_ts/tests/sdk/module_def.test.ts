// The module definition, decoded by the descriptions that come with the SDK.
import type { AlgebraicType, BinaryReader, BinaryWriter } from 'spacetimedb';
import { describe, expect, inject, test } from 'vitest';

interface Description {
  algebraicType: AlgebraicType;
  serialize: (writer: BinaryWriter, value: unknown) => void;
  deserialize: (reader: BinaryReader) => unknown;
}
// The package has these descriptions for its own use only, and without types of their own.
const source = (file: string) => new URL(`../../node_modules/spacetimedb/src/lib/${file}.ts`, import.meta.url).pathname;
const load = async <T>(file: string): Promise<T> => (await import(/* @vite-ignore */ source(file))) as T;
const { RawModuleDef } = await load<{ RawModuleDef: Description }>('autogen/types');
const { default: Reader } = await load<{ default: typeof BinaryReader }>('binary_reader');
const { default: Writer } = await load<{ default: typeof BinaryWriter }>('binary_writer');

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Types = { elements?: { name: string; algebraicType: AlgebraicType }[]; variants?: { name: string; algebraicType: AlgebraicType }[] };

const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** The SDK's value of SATS-JSON, by the type that the SDK describes; throws where the JSON does not fit. */
function fromSats(type: AlgebraicType, json: Json, path: string): unknown {
  const fail = (why: string): never => {
    throw new TypeError(`${path}: ${why}, got ${JSON.stringify(json)?.slice(0, 100)}`);
  };
  if (type.tag === 'Product') {
    const { elements } = type.value as Required<Types>;
    if (json === null || typeof json !== 'object' || Array.isArray(json)) {
      return fail('expected an object');
    }
    const given = new Map(Object.entries(json).map(([key, value]) => [camel(key), value]));
    for (const key of given.keys()) {
      if (!elements.some((element) => element.name === key)) {
        fail(`no field ${key}`);
      }
    }
    return Object.fromEntries(
      elements.map(({ name, algebraicType }) => {
        const value = given.get(name);
        return value === undefined ? fail(`no field ${name}`) : [name, fromSats(algebraicType, value, `${path}.${name}`)];
      }),
    );
  }
  if (type.tag === 'Sum') {
    const { variants } = type.value as Required<Types>;
    const entries = Object.entries((json ?? {}) as Record<string, Json>);
    const [tag, payload] = entries[0] ?? fail('expected a variant');
    const variant = variants.find(({ name }) => name === tag);
    if (entries.length !== 1 || variant === undefined) {
      return fail(`no variant ${tag}`);
    }
    if (variants[0]?.name === 'some' && variants[1]?.name === 'none') {
      return tag === 'none' ? undefined : fromSats(variant.algebraicType, payload as Json, `${path}.some`);
    }
    const unit = variant.algebraicType.tag === 'Product' && Array.isArray(payload) && payload.length === 0;
    return { tag, value: unit ? {} : fromSats(variant.algebraicType, payload as Json, `${path}.${tag}`) };
  }
  if (type.tag === 'Array') {
    const item = type.value as AlgebraicType;
    if (item.tag === 'U8') {
      return typeof json === 'string' ? Uint8Array.from(Buffer.from(json, 'hex')) : fail('expected hex text');
    }
    return Array.isArray(json) ? json.map((part, at) => fromSats(item, part, `${path}[${at}]`)) : fail('expected an array');
  }
  const kind = { String: 'string', Bool: 'boolean' }[type.tag as string] ?? 'number';
  if (typeof json !== kind) {
    return fail(`expected a ${kind}`);
  }
  return ['I64', 'U64', 'I128', 'U128', 'I256', 'U256'].includes(type.tag) ? BigInt(json as number) : json;
}

describe.each(['v9', 'v10'] as const)('version %s', (version) => {
  test('fits the description of the SDK and survives its bytes', () => {
    const json = JSON.parse(inject('moduleDefs')[version]) as Json;

    const definition = fromSats(RawModuleDef.algebraicType, json, '$');

    const writer = new Writer(1024);
    RawModuleDef.serialize(writer, definition);
    const back = RawModuleDef.deserialize(new Reader(writer.getBuffer()));
    expect(back).toEqual(definition);
  });
});

test.each([
  ['9', 'V9'],
  ['10', 'V10'],
])('the server hands out version %s of what clients may use', async (version, tag) => {
  const response = await fetch(`${inject('uri')}/v1/database/${inject('database')}/schema?version=${version}`);
  const text = await response.text();

  const definition = fromSats(RawModuleDef.algebraicType, { [tag]: JSON.parse(text) as Json }, '$');

  expect(definition).toBeTruthy();
  expect(text).toContain('"player"');
  expect(text).not.toContain('"secret"');
});

describe('version 10 says', () => {
  type Section = Record<string, Json>;
  const sections = () => (JSON.parse(inject('moduleDefs').v10) as { V10: { sections: Section[] } }).V10.sections;
  const section = (name: string) => sections().find((s) => name in s)?.[name] as Record<string, Json>[];

  test('which tables are events, private, and scheduled', () => {
    const table = (name: string) => section('Tables').find((t) => t['source_name'] === name);

    expect(table('damage')).toMatchObject({ is_event: true, table_access: { Public: [] } });
    expect(table('secret')).toMatchObject({ is_event: false, table_access: { Private: [] } });
    expect(section('Schedules')).toMatchObject([{ table_name: 'alarm', schedule_at_col: 1, function_name: 'ring' }]);
  });

  test('keys, indexes, sequences and defaults', () => {
    const player = section('Tables').find((t) => t['source_name'] === 'player');

    expect(player).toMatchObject({
      primary_key: [0],
      indexes: [
        { accessor_name: { some: 'id' }, algorithm: { BTree: [0] } },
        { accessor_name: { some: 'name' }, algorithm: { BTree: [1] } },
        { accessor_name: { some: 'team_id' }, algorithm: { BTree: [2] } },
        { accessor_name: { some: 'by_team_id_hp' }, algorithm: { BTree: [2, 3] } },
      ],
      constraints: [{ data: { Unique: { columns: [0] } } }, { data: { Unique: { columns: [1] } } }],
      sequences: [{ column: 0 }],
      default_values: [{ col_id: 3, value: '64000000' }],
    });
  });

  test('which functions clients may call', () => {
    const visible = (name: string) => section('Reducers').find((r) => r['source_name'] === name)?.['visibility'];

    expect(visible('add_player')).toEqual({ ClientCallable: [] });
    expect([visible('hidden'), visible('ring'), visible('joined')]).toEqual([{ Private: [] }, { Private: [] }, { Private: [] }]);
    expect(section('LifeCycleReducers')).toEqual([
      { lifecycle_spec: { OnConnect: [] }, function_name: 'joined' },
      { lifecycle_spec: { OnDisconnect: [] }, function_name: 'left' },
    ]);
  });

  test('keys of views, filters, and that names stay as they are', () => {
    expect(section('ViewPrimaryKeys')).toEqual([
      { view_source_name: 'standings', columns: ['team_id'] },
      { view_source_name: 'weak_players', columns: ['id'] },
      { view_source_name: 'my_session', columns: ['connection'] },
    ]);
    expect(section('RowLevelSecurity')).toEqual([{ sql: 'SELECT * FROM mail WHERE to = :sender' }]);
    expect(sections().at(-1)).toEqual({ CaseConversionPolicy: { None: [] } });
  });
});
