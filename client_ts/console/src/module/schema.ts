// The definition of a module, as the server tells it (`/schema?version=10`), in a form that is easy to work with.

export type Kind =
  | { tag: 'bool' | 'string' | 'bytes' | 'identity' | 'connectionId' | 'timestamp' | 'duration' | 'uuid' | 'scheduleAt' | 'unit' }
  | { tag: 'int'; name: IntName }
  | { tag: 'float'; name: 'f32' | 'f64' }
  | { tag: 'array' | 'option'; of: Kind }
  | { tag: 'product'; fields: Field[] }
  | { tag: 'sum'; variants: Field[] }
  | { tag: 'ref'; ref: number };

export type IntName = `${'i' | 'u'}${8 | 16 | 32 | 64 | 128 | 256}`;

export interface Field {
  name: string;
  kind: Kind;
}

export interface Index {
  name: string;
  columns: string[];
  unique: boolean;
}

export interface TableInfo {
  name: string;
  columns: Field[];
  primaryKey: string | null;
  autoInc: string[];
  indexes: Index[];
  isPublic: boolean;
  isEvent: boolean;
  isView: boolean;
  /** The function that its rows call, and the column that says when. */
  schedule: { call: string; at: string } | null;
}

export interface FunctionInfo {
  name: string;
  kind: 'reducer' | 'procedure';
  params: Field[];
  returns: Kind | null;
  isPrivate: boolean;
  /** `Init`, `OnConnect`, `OnDisconnect`: nobody calls those. */
  lifecycle: string | null;
  /** The table whose rows call it. */
  scheduledBy: string | null;
}

export interface Schema {
  types: Kind[];
  /** The names of types by their numbers. */
  names: Map<number, string>;
  tables: TableInfo[];
  functions: FunctionInfo[];
}

type Json = any; // it is somebody else's JSON

const INTS = new Set('I8 U8 I16 U16 I32 U32 I64 U64 I128 U128 I256 U256'.split(' '));
const SPECIAL: Record<string, Kind> = {
  __identity__: { tag: 'identity' },
  __connection_id__: { tag: 'connectionId' },
  __timestamp_micros_since_unix_epoch__: { tag: 'timestamp' },
  __time_duration_micros__: { tag: 'duration' },
  __uuid__: { tag: 'uuid' },
};

function optional(value: Json): string {
  return value?.some ?? '';
}

function fieldsOf(list: Json[]): Field[] {
  return list.map((one, number) => ({ name: optional(one.name) || `${number}`, kind: kindOf(one.algebraic_type) }));
}

/** An AlgebraicType of the server's JSON. */
export function kindOf(type: Json): Kind {
  const [tag, body] = Object.entries<Json>(type)[0]!;
  if (INTS.has(tag)) return { tag: 'int', name: tag.toLowerCase() as IntName };
  switch (tag) {
    case 'Bool':
      return { tag: 'bool' };
    case 'String':
      return { tag: 'string' };
    case 'F32':
    case 'F64':
      return { tag: 'float', name: tag.toLowerCase() as 'f32' | 'f64' };
    case 'Ref':
      return { tag: 'ref', ref: body };
    case 'Array':
      return 'U8' in body ? { tag: 'bytes' } : { tag: 'array', of: kindOf(body) };
    case 'Product': {
      const fields = fieldsOf(body.elements);
      if (fields.length === 0) return { tag: 'unit' };
      return (fields.length === 1 && SPECIAL[fields[0]!.name]) || { tag: 'product', fields };
    }
    case 'Sum': {
      const variants = fieldsOf(body.variants);
      const names = variants.map((variant) => variant.name).join();
      if (names === 'some,none') return { tag: 'option', of: variants[0]!.kind };
      if (names === 'Interval,Time') return { tag: 'scheduleAt' };
      return { tag: 'sum', variants };
    }
  }
  throw new Error(`the schema has a type that is not known here: ${tag}`);
}

/** The definition of version 10. */
export function readSchema(json: Json): Schema {
  const section = (name: string): Json => json.sections.find((one: Json) => name in one)?.[name] ?? [];
  const types: Kind[] = (section('Typespace').types ?? []).map(kindOf);
  const schema: Schema = { types, names: new Map(), tables: [], functions: [] };
  for (const one of section('Types')) schema.names.set(one.ty, one.source_name.source_name);

  const schedules = new Map<string, Json>(section('Schedules').map((one: Json) => [one.table_name, one]));
  for (const table of section('Tables')) schema.tables.push(tableOf(table, schema, schedules.get(table.source_name)));
  const keys = new Map<string, string>(section('ViewPrimaryKeys').map((one: Json) => [one.view_source_name, one.columns[0]]));
  for (const view of section('Views')) {
    if (view.params.elements.length) continue;
    const returned = kindOf(view.return_type);
    const row = deref(returned.tag === 'array' || returned.tag === 'option' ? returned.of : returned, schema);
    schema.tables.push({
      name: view.source_name,
      columns: row.tag === 'product' ? row.fields : [],
      primaryKey: keys.get(view.source_name) ?? null,
      autoInc: [],
      indexes: [],
      isPublic: view.is_public,
      isEvent: false,
      isView: true,
      schedule: null,
    });
  }

  const lifecycle = new Map<string, string>(
    section('LifeCycleReducers').map((one: Json) => [one.function_name, Object.keys(one.lifecycle_spec)[0]]),
  );
  const scheduled = new Map<string, string>([...schedules.values()].map((one) => [one.function_name, one.table_name]));
  for (const kind of ['reducer', 'procedure'] as const) {
    for (const one of section(kind === 'reducer' ? 'Reducers' : 'Procedures')) {
      schema.functions.push({
        name: one.source_name,
        kind,
        params: fieldsOf(one.params.elements),
        returns: kind === 'procedure' ? kindOf(one.return_type) : null,
        isPrivate: 'Private' in one.visibility,
        lifecycle: lifecycle.get(one.source_name) ?? null,
        scheduledBy: scheduled.get(one.source_name) ?? null,
      });
    }
  }
  return schema;
}

function tableOf(table: Json, schema: Schema, schedule: Json): TableInfo {
  const row = deref({ tag: 'ref', ref: table.product_type_ref }, schema);
  const columns = row.tag === 'product' ? row.fields : [];
  const named = (numbers: number[]): string[] => numbers.map((number) => columns[number]!.name);
  const unique = table.constraints.map((one: Json) => named(one.data.Unique.columns).join());
  return {
    name: table.source_name,
    columns,
    primaryKey: named(table.primary_key)[0] ?? null,
    autoInc: table.sequences.map((one: Json) => columns[one.column]!.name),
    indexes: table.indexes.map((one: Json) => {
      const found = named(one.algorithm.BTree ?? one.algorithm.Hash ?? [one.algorithm.Direct]);
      return { name: optional(one.source_name), columns: found, unique: unique.includes(found.join()) };
    }),
    isPublic: 'Public' in table.table_access,
    isEvent: table.is_event,
    isView: false,
    schedule: schedule ? { call: schedule.function_name, at: columns[schedule.schedule_at_col]!.name } : null,
  };
}

/** The type itself, where a name stands for it. */
export function deref(kind: Kind, schema: Schema): Exclude<Kind, { tag: 'ref' }> {
  let found = kind;
  while (found.tag === 'ref') found = schema.types[found.ref]!;
  return found;
}

/** A type as people write it. */
export function kindText(kind: Kind, schema: Schema): string {
  switch (kind.tag) {
    case 'int':
    case 'float':
      return kind.name;
    case 'array':
      return `list[${kindText(kind.of, schema)}]`;
    case 'option':
      return `${kindText(kind.of, schema)} | None`;
    case 'ref':
      return schema.names.get(kind.ref) ?? `type ${kind.ref}`;
    case 'product':
      return `(${kind.fields.map((field) => field.name).join(', ')})`;
    case 'sum':
      return kind.variants.map((variant) => variant.name).join(' | ');
    default:
      return NAMES[kind.tag] ?? kind.tag;
  }
}

const NAMES: Record<string, string> = {
  string: 'str',
  timestamp: 'datetime',
  duration: 'timedelta',
  identity: 'Identity',
  connectionId: 'ConnectionId',
  scheduleAt: 'ScheduleAt',
  uuid: 'UUID',
  unit: 'None',
};
