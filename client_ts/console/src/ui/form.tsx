// Forms made of types. What is typed is kept flat, by path (`init.bids[0].amount`), so that an error finds its field.

import { useId, useState, type ReactNode } from 'react';
import type { Shape, ShapeField } from '../live/description';
import { deref, kindText, type Field, type Kind, type Schema } from '../module/schema';
import { Invalid, isoTime, parse, parseDuration, parseInteger, parseJson, parseTime } from '../module/values';
import { Icon } from './icons';

export type FormType = { text: string } & (
  | { kind: 'leaf'; parse: (text: string) => unknown; long?: boolean }
  | { kind: 'choice'; options: { text: string; value: unknown }[] }
  | { kind: 'option' | 'list'; of: FormType; absent?: unknown }
  | { kind: 'struct'; fields: FormField[] }
);

export interface FormField {
  name: string;
  type: FormType;
  /** What it is when it is left as it is; undefined: it must be filled in. */
  initial?: unknown;
}

/** What is typed: the text of each leaf; `path?` whether an option is there, `path#` how long a list is. */
export type Draft = Record<string, string>;

// --- types

/** Values are plain JSON. */
export function formOfShape(shape: Shape): FormType {
  const text = shape.type;
  const leaf = (read: (text: string) => unknown, long = false): FormType => ({ kind: 'leaf', text, parse: read, long });
  switch (shape.kind) {
    case 'struct':
      return { kind: 'struct', text, fields: shape.fields.map(fieldOfShape) };
    case 'option':
      return { kind: 'option', text, of: formOfShape(shape.of), absent: null };
    case 'list':
      return { kind: 'list', text, of: formOfShape(shape.of) };
    case 'enum':
      return { kind: 'choice', text, options: shape.values.map((value) => ({ text: String(value), value })) };
    case 'boolean':
      return { kind: 'choice', text, options: [false, true].map((value) => ({ text: String(value), value })) };
    case 'integer':
      return leaf((typed) => parseInteger('i256', typed.trim()));
    case 'number':
      return leaf(parseNumber);
    case 'duration':
      return leaf((typed) => (/^-?P/i.test(typed.trim()) ? typed.trim() : isoDuration(parseDuration(typed.trim()))));
    case 'time':
      return leaf((typed) => isoTime(parseTime(typed.trim())));
    case 'json':
      return leaf((typed) => parseJson(typed), true);
    case 'null':
      return { kind: 'struct', text, fields: [] };
    default:
      return leaf((typed) => typed);
  }
}

/** JSON has no other numbers. */
function parseNumber(typed: string): number {
  const number: number = parse({ tag: 'float', name: 'f64' }, typed, NO_SCHEMA);
  if (!Number.isFinite(number)) throw new Invalid('a number, such as 1.5; JSON has no Infinity');
  return number;
}

/** Written out: `1e-6` is no number of ISO 8601. */
function isoDuration(micros: bigint): string {
  const [sign, size] = micros < 0n ? ['-', -micros] : ['', micros];
  const fraction = `${size % 1_000_000n}`.padStart(6, '0').replace(/0+$/, '');
  return `${sign}PT${size / 1_000_000n}${fraction && `.${fraction}`}S`;
}

function fieldOfShape({ name, shape, default: initial }: ShapeField): FormField {
  return { name, type: formOfShape(shape), ...(initial === undefined ? {} : { initial }) };
}

/** Values are the SDK's. */
export function formOfKind(kind: Kind, schema: Schema): FormType {
  const text = kindText(kind, schema);
  const type = deref(kind, schema);
  switch (type.tag) {
    case 'product':
      return { kind: 'struct', text, fields: formOfFields(type.fields, schema) };
    case 'option':
      return { kind: 'option', text, of: formOfKind(type.of, schema) };
    case 'array':
      return { kind: 'list', text, of: formOfKind(type.of, schema) };
    case 'bool':
      return { kind: 'choice', text, options: [false, true].map((value) => ({ text: String(value), value })) };
    case 'unit':
      return { kind: 'struct', text, fields: [] };
    case 'sum':
      if (type.variants.every((variant) => deref(variant.kind, schema).tag === 'unit')) {
        return { kind: 'choice', text, options: type.variants.map(({ name }) => ({ text: name, value: { tag: name, value: {} } })) };
      }
      return { kind: 'leaf', text, parse: (typed) => parse(kind, typed, schema), long: true };
    default:
      return { kind: 'leaf', text, parse: (typed) => parse(kind, typed, schema) };
  }
}

export function formOfFields(fields: Field[], schema: Schema): FormField[] {
  return fields.map(({ name, kind }) => ({ name, type: formOfKind(kind, schema) }));
}

const NO_SCHEMA: Schema = { types: [], names: new Map(), tables: [], functions: [] };

// --- drafts

/** A draft of a value that is known, such as a default. */
export function draftOf(type: FormType, value: unknown, path: string, into: Draft = {}): Draft {
  switch (type.kind) {
    case 'leaf':
      if (value !== undefined && value !== null) into[path] = typeof value === 'string' ? value : JSON.stringify(value);
      break;
    case 'choice': {
      const at = type.options.findIndex((option) => option.value === value);
      if (at >= 0) into[path] = String(at);
      break;
    }
    case 'option':
      if (value !== undefined && value !== null) {
        into[`${path}?`] = 'yes';
        draftOf(type.of, value, path, into);
      }
      break;
    case 'list':
      if (Array.isArray(value)) {
        into[`${path}#`] = String(value.length);
        value.forEach((item, at) => draftOf(type.of, item, `${path}[${at}]`, into));
      }
      break;
    case 'struct':
      for (const field of type.fields) {
        const own = (value as Record<string, unknown> | null | undefined)?.[field.name] ?? field.initial;
        draftOf(field.type, own, join(path, field.name), into);
      }
  }
  return into;
}

export const join = (path: string, name: string): string => (path ? `${path}.${name}` : name);

/** The value of a draft; what is wrong goes into `errors`, by path. */
export function valueOf(type: FormType, draft: Draft, path: string, errors: Record<string, string>): unknown {
  switch (type.kind) {
    case 'leaf':
      try {
        const text = draft[path] ?? '';
        return type.parse(text);
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        errors[path] = (draft[path] ?? '') === '' ? `needed: ${error.message}` : error.message;
        return undefined;
      }
    case 'choice':
      return type.options[Number(draft[path] ?? 0)]?.value;
    case 'option':
      return draft[`${path}?`] ? valueOf(type.of, draft, path, errors) : type.absent;
    case 'list':
      return Array.from({ length: Number(draft[`${path}#`] ?? 0) }, (_item, at) => valueOf(type.of, draft, `${path}[${at}]`, errors));
    case 'struct':
      return Object.fromEntries(type.fields.map((field) => [field.name, valueOf(field.type, draft, join(path, field.name), errors)]));
  }
}

/** JSON text, in which large integers keep all their digits. */
export function jsonText(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .filter(([, own]) => own !== undefined)
      .map(([key, own]) => `${JSON.stringify(key)}:${jsonText(own)}`)
      .join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Which field an error of the server is about: `... - at `$.item``, or `init.item is declared as ...`. */
export function pathInError(text: string): string | null {
  return /`?\$\.([\w.[\]]+)`?/.exec(text)?.[1] ?? /\b(?:init|payload)\.([\w.[\]]+)/.exec(text)?.[1] ?? null;
}

// --- fields

interface FieldsProps {
  draft: Draft;
  errors: Record<string, string>;
  set: (path: string, text: string | undefined) => void;
}

export function Fields({ fields, path = '', ...rest }: FieldsProps & { fields: FormField[]; path?: string }) {
  return (
    <>
      {fields.map((field) => (
        <FieldRow key={field.name} label={field.name} type={field.type} path={join(path, field.name)} {...rest} />
      ))}
    </>
  );
}

function FieldRow({ label, type, path, ...rest }: FieldsProps & { label: ReactNode; type: FormType; path: string }) {
  const id = useId();
  const error = rest.errors[path];
  const isGroup = inner(type, rest.draft, path)?.kind === 'struct' || type.kind === 'list';
  return (
    <div className={`field ${isGroup ? 'field-group' : ''} ${error ? 'is-wrong' : ''}`} data-path={path}>
      <label className="field-label" htmlFor={id}>
        <span>{label}</span>
        <span className="field-type">{type.text}</span>
      </label>
      <div className="field-input">
        <Input id={id} type={type} path={path} {...rest} />
        {error && (
          <p className="field-error" role="alert">
            {error}
          </p>
        )}
      </div>
    </div>
  );
}

function inner(type: FormType, draft: Draft, path: string): FormType | null {
  if (type.kind !== 'option') return type;
  return draft[`${path}?`] ? inner(type.of, draft, path) : null;
}

function Input({ id, type, path, ...rest }: FieldsProps & { id: string; type: FormType; path: string }): ReactNode {
  const { draft, errors, set } = rest;
  switch (type.kind) {
    case 'leaf': {
      const props = {
        id,
        value: draft[path] ?? '',
        spellCheck: false,
        autoComplete: 'off',
        'aria-invalid': path in errors,
        onChange: (event: { target: { value: string } }) => set(path, event.target.value),
      };
      return type.long ? <textarea rows={3} {...props} /> : <input {...props} />;
    }
    case 'choice':
      return (
        <select id={id} value={draft[path] ?? '0'} onChange={(event) => set(path, event.target.value)}>
          {type.options.map((option, at) => (
            <option key={option.text} value={at}>
              {option.text}
            </option>
          ))}
        </select>
      );
    case 'option': {
      const there = Boolean(draft[`${path}?`]);
      return (
        <div className="field-option">
          <input
            type="checkbox"
            id={there ? undefined : id}
            aria-label={`give ${path}`}
            checked={there}
            onChange={(event) => set(`${path}?`, event.target.checked ? 'yes' : undefined)}
          />
          {there ? <Input id={id} type={type.of} path={path} {...rest} /> : <span className="quiet">None</span>}
        </div>
      );
    }
    case 'list': {
      const length = Number(draft[`${path}#`] ?? 0);
      return (
        <div className="field-list">
          {Array.from({ length }, (_item, at) => (
            <FieldRow key={at} label={`${at + 1}`} type={type.of} path={`${path}[${at}]`} {...rest} />
          ))}
          <div className="field-list-buttons">
            <button type="button" id={id} className="button button-small" onClick={() => set(`${path}#`, `${length + 1}`)}>
              <Icon name="plus" size={12} /> Add
            </button>
            {length > 0 && (
              <button type="button" className="button button-small" onClick={() => set(`${path}#`, `${length - 1}`)}>
                Remove last
              </button>
            )}
          </div>
        </div>
      );
    }
    case 'struct':
      return type.fields.length ? (
        <div className="field-struct">
          <Fields fields={type.fields} path={path} {...rest} />
        </div>
      ) : (
        <span className="quiet">nothing to fill in</span>
      );
  }
}

/** The state of a form. `check` gives the value, or null when something is wrong and is shown at its field. */
export function useForm(type: FormType) {
  const [state, setState] = useState(() => ({ type, draft: draftOf(type, undefined, '') }));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const draft = state.type.text === type.text ? state.draft : {};
  return {
    props: {
      draft,
      errors,
      set: (path: string, text: string | undefined) => {
        setState((last) => {
          const next = { ...last.draft };
          if (text === undefined) delete next[path];
          else next[path] = text;
          return { ...last, draft: next };
        });
        setErrors((last) => Object.fromEntries(Object.entries(last).filter(([key]) => key !== path)));
      },
    },
    check: (): { value: unknown } | null => {
      const found: Record<string, string> = {};
      const value = valueOf(type, draft, '', found);
      setErrors(found);
      return Object.keys(found).length ? null : { value };
    },
    /** What the server said, at the field that it is about; false when it names none. */
    refuse: (text: string): boolean => {
      const path = pathInError(text);
      if (path === null) return false;
      setErrors({ [path]: text });
      return true;
    },
    reset: (next: FormType) => {
      setState({ type: next, draft: draftOf(next, undefined, '') });
      setErrors({});
    },
  };
}
