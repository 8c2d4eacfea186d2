// The bank as the official SDK sees it, and connections to it.
import {
  DbConnectionBuilder,
  DbConnectionImpl,
  procedures,
  reducers,
  reducerSchema,
  schema,
  SubscriptionBuilderImpl,
  t,
  table,
} from 'spacetimedb';
import { WebSocket } from 'undici';

globalThis.WebSocket ??= WebSocket;

const account = t.row({ id: t.u64().primaryKey(), owner: t.string(), balance: t.i64() });
const tables = schema({ account: table({ name: 'account', indexes: [], constraints: [] }, account) });
const calls = reducers(reducerSchema('transfer', { source: t.u64(), target: t.u64(), amount: t.i64() }));
const module = {
  versionInfo: { cliVersion: '2.10.1' },
  tables: tables.schemaType.tables,
  reducers: calls.reducersType.reducers,
  ...procedures(),
};

/** A connection, once the server has answered. */
export function connect(uri, options = (builder) => builder) {
  return new Promise((resolve, reject) => {
    options(new DbConnectionBuilder(module, (config) => new DbConnectionImpl(config)))
      .withUri(uri)
      .withDatabaseName('bank')
      .onConnect((connection) => resolve(connection))
      .onConnectError((_context, error) => reject(error ?? new Error('refused')))
      .build();
  });
}

/** All rows of the bank in the connection's cache. */
export function subscribe(connection) {
  return new Promise((resolve, reject) => {
    new SubscriptionBuilderImpl(connection)
      .onApplied(() => resolve())
      .onError((_context, error) => reject(error))
      .subscribe('SELECT * FROM account');
  });
}

/** Arguments of a transfer between two different accounts. */
export function transfer(accounts) {
  const source = Math.floor(Math.random() * accounts);
  const target = (source + 1 + Math.floor(Math.random() * (accounts - 1))) % accounts;
  return { source: BigInt(source), target: BigInt(target), amount: 1n };
}

/** Milliseconds below which half and 99 percent of the samples lie. */
export function percentiles(samples) {
  samples.sort((a, b) => a - b);
  const at = (share) => samples[Math.min(samples.length - 1, Math.floor(samples.length * share))];
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

export function report(measure) {
  process.stdout.write(`\n${JSON.stringify(measure)}\n`, () => process.exit(0));
}
