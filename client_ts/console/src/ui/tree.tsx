// A value of JSON as a tree, with what is not as it was before marked.

import { useState, type ReactNode } from 'react';
import { serverNow } from '../live/clock';
import { withoutTurns } from '../module/values';
import { countdown, grouped, roughly } from './time';

/** Of longer texts and lists the beginning is shown first: a browser needs seconds for a megabyte. */
const TEXT_MAX = 2000;
const CHILDREN_MAX = 200;

type Json = unknown;

interface Node {
  name: string;
  value: Json;
  before: Json;
  /** Whether there was a value before at all, to compare with. */
  compared: boolean;
  type?: string | undefined;
}

const isBranch = (value: Json): value is object => typeof value === 'object' && value !== null && Object.keys(value).length > 0;

export function same(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [left, right] = [Object.keys(a), Object.keys(b)];
  return left.length === right.length && left.every((key) => Object.hasOwn(b, key) && same((a as never)[key], (b as never)[key]));
}

function leafText(value: Json): string {
  if (typeof value === 'bigint') return value.toString();
  return withoutTurns(JSON.stringify(value) ?? 'undefined');
}

/** The text of a leaf: of a long one its beginning, until somebody wants all of it. */
function Leaf({ value }: { value: Json }) {
  const [all, setAll] = useState(false);
  const text = leafText(value);
  if (all || text.length <= TEXT_MAX) return text;
  return (
    <>
      {text.slice(0, TEXT_MAX)}…{' '}
      <button className="link" onClick={() => setAll(true)}>
        all {grouped(text.length)} characters
      </button>
    </>
  );
}

/** What durations and times of JSON say to people. */
function hint(value: Json): string | null {
  if (typeof value !== 'string') return null;
  const duration = /^(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(value);
  if (duration) {
    const [, sign, days = 0, hours = 0, minutes = 0, seconds = 0] = duration;
    const total = Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return total < 60 ? null : `${sign}${countdown(total * 1000)}`;
  }
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value)) {
    const left = new Date(value).getTime() - serverNow();
    return Number.isNaN(left) ? null : left > 0 ? `in ${roughly(left)}` : `${roughly(left)} ago`;
  }
  return null;
}

function kindOfLeaf(value: Json): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** What may be under a name: what is there now, and what has gone. */
function childrenOf({ value, before, compared }: Node): Node[] {
  const now = isBranch(value) ? Object.entries(value) : [];
  const old = isBranch(before) ? (before as Record<string, Json>) : {};
  const was = (name: string): Json => (Object.hasOwn(old, name) ? old[name] : undefined); // players name keys, `constructor` too
  const gone = compared ? Object.keys(old).filter((name) => !isBranch(value) || !Object.hasOwn(value, name)) : [];
  return [
    ...now.map(([name, own]) => ({ name, value: own, before: was(name), compared })),
    ...gone.map((name) => ({ name, value: undefined, before: old[name], compared })),
  ];
}

function Branch({ node, depth }: { node: Node; depth: number }) {
  const { name, value, before, compared, type } = node;
  const [open, setOpen] = useState(depth < 3);
  const gone = compared && value === undefined;
  const fresh = compared && before === undefined && !gone;
  const changed = compared && !gone && !fresh && !same(value, before);
  const branch = isBranch(value);
  const mark = gone ? 'is-gone' : fresh ? 'is-new' : changed ? 'is-changed' : '';
  const label = (
    <>
      <span className="tree-name">{name}</span>
      {branch ? (
        <span className="tree-note">{Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}</span>
      ) : (
        <span className={`tree-value tree-${kindOfLeaf(gone ? before : value)}`}>
          <Leaf value={gone ? before : value} />
        </span>
      )}
      {changed && !branch && !isBranch(before) && (
        <span className="tree-was">
          was <Leaf value={before} />
        </span>
      )}
      {gone && <span className="tree-was">gone</span>}
      {!branch && !gone && hint(value) && <span className="tree-note">{hint(value)}</span>}
      {type && <span className="tree-type">{type.replace(/\b[a-z_]\w*\.(?=\w)/g, '')}</span>}
    </>
  );
  return (
    <li className={mark} data-name={name} role="treeitem" aria-expanded={branch ? open : undefined}>
      {branch ? (
        <button className="tree-row tree-branch" onClick={() => setOpen(!open)}>
          <i className={`tree-arrow ${open ? 'is-open' : ''}`} />
          {label}
        </button>
      ) : (
        <div className="tree-row">{label}</div>
      )}
      {branch && open && (
        <ul role="group">
          <Branches nodes={childrenOf(node)} depth={depth + 1} />
        </ul>
      )}
    </li>
  );
}

function Branches({ nodes, depth }: { nodes: Node[]; depth: number }) {
  const [shown, setShown] = useState(CHILDREN_MAX);
  return (
    <>
      {nodes.slice(0, shown).map((node) => (
        <Branch key={node.name} node={node} depth={depth} />
      ))}
      {nodes.length > shown && (
        <li>
          <button className="link tree-row" onClick={() => setShown(shown * 4)}>
            {grouped(nodes.length - shown)} more
          </button>
        </li>
      )}
    </>
  );
}

interface Props {
  value: Record<string, Json>;
  /** What it was before; null when nothing is to be compared. */
  before: Record<string, Json> | null;
  types?: Record<string, string>;
  empty?: ReactNode;
}

export function Tree({ value, before, types = {}, empty }: Props) {
  const nodes = childrenOf({ name: '', value, before, compared: before !== null });
  if (nodes.length === 0) return <p className="quiet pad">{empty ?? 'Nothing.'}</p>;
  return (
    <ul className="tree" role="tree">
      <Branches nodes={nodes.map((node) => ({ ...node, type: types[node.name] }))} depth={1} />
    </ul>
  );
}
