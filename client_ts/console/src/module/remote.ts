// The SDK's description of a module, made at run time: what `gamedb generate` writes down for one game, for any game.
// Names stay as they are in the database (`team_id`, not `teamId`), so that what one sees is what one writes in SQL.

import {
  ColumnBuilder,
  DbConnectionBuilder,
  DbConnectionImpl,
  procedures,
  procedureSchema,
  reducers,
  reducerSchema,
  schema as schemaOf,
  t,
  table,
  type TypeBuilder,
} from 'spacetimedb';
import type { Field, Kind, Schema } from './schema';

type Builder = TypeBuilder<any, any>; // known at run time only
type Connection = DbConnectionImpl<any>;

/** The version of the SDK whose generated code this is like; it refuses versions that it does not know. */
const SDK_VERSION = '2.10.1';

class Builders {
  private readonly named = new Map<number, Builder>();
  private count = 0;

  constructor(private readonly schema: Schema) {}

  of(kind: Kind): Builder {
    switch (kind.tag) {
      case 'int':
      case 'float':
        return t[kind.name]();
      case 'bytes':
        return t.byteArray();
      case 'array':
        return t.array(this.of(kind.of));
      case 'option':
        return t.option(this.of(kind.of));
      case 'product':
        return t.object(this.anonymous(), this.members(kind.fields));
      case 'sum':
        return t.enum(this.anonymous(), this.members(kind.variants) as Record<string, never>);
      case 'ref':
        return this.ref(kind.ref);
      case 'duration':
        return t.timeDuration();
      default:
        return t[kind.tag]();
    }
  }

  /** Getters, since a type may be inside itself. */
  members(fields: Field[]): Record<string, Builder> {
    const found: Record<string, Builder> = {};
    for (const { name, kind } of fields) {
      Object.defineProperty(found, name, { enumerable: true, configurable: true, get: () => this.of(kind) });
    }
    return found;
  }

  private anonymous(): string {
    return `Anonymous${(this.count += 1)}`;
  }

  private ref(number: number): Builder {
    let found = this.named.get(number);
    if (found === undefined) {
      const kind = this.schema.types[number]!;
      const name = this.schema.names.get(number) ?? `Type${number}`;
      if (kind.tag === 'product') found = t.object(name, this.members(kind.fields));
      else if (kind.tag === 'sum') found = t.enum(name, this.members(kind.variants) as Record<string, never>);
      else if (kind.tag === 'unit') found = t.object(name, {});
      else found = this.of(kind);
      this.named.set(number, found);
    }
    return found;
  }

  row(fields: Field[], key: string | null): Record<string, ColumnBuilder<any, any, any>> {
    return Object.fromEntries(
      fields.map(({ name, kind }) => [name, new ColumnBuilder(this.of(kind), name === key ? { isPrimaryKey: true } : {})]),
    );
  }
}

/** A builder of connections to a database with this schema. */
export function connectionBuilder(schema: Schema): DbConnectionBuilder<Connection> {
  const builders = new Builders(schema);
  const tables = Object.fromEntries(
    schema.tables.map((one) => [
      one.name,
      table({ name: one.name, event: one.isEvent }, builders.row(one.columns, one.primaryKey) as never),
    ]),
  );
  const called = schema.functions.filter((one) => one.lifecycle === null);
  const remote = {
    versionInfo: { cliVersion: SDK_VERSION },
    tables: schemaOf(tables as never).schemaType.tables,
    reducers: reducers(
      called.filter((one) => one.kind === 'reducer').map((one) => reducerSchema(one.name, builders.members(one.params))),
    ).reducersType.reducers,
    ...procedures(
      called
        .filter((one) => one.kind === 'procedure')
        .map((one) => procedureSchema(one.name, builders.members(one.params), builders.of(one.returns!))),
    ),
  };
  return new DbConnectionBuilder<Connection>(remote as never, (config) => new DbConnectionImpl(config) as Connection);
}

export type { Connection };
