// The workflows around one: its parents up to the first, its children and theirs.

import { useState } from 'react';
import { useDatabase, useRows } from '../../live/hooks';
import type { Row } from '../../module/values';
import { href } from '../../route';
import { Panel, Status } from '../../ui/parts';

const SHOWN_MAX = 100;

export function Family({ row }: { row: Row }) {
  const id = row.id as bigint;
  const parent = row.parent_id as bigint | undefined;
  const children = useRows('workflow', [`SELECT * FROM workflow WHERE parent_id = ${id}`], (one) => one.parent_id === id, `${id}`).rows;
  if (parent === undefined && children.length === 0) return null;
  return (
    <Panel icon="flow" title="Family" note={children.length ? `${children.length} ${children.length === 1 ? 'child' : 'children'}` : undefined}>
      <ul className="family" data-testid="family">
        {parent === undefined ? <Own row={row} childRows={children} /> : <Ancestor id={parent} inner={<Own row={row} childRows={children} />} />}
      </ul>
    </Panel>
  );
}

function Ancestor({ id, inner }: { id: bigint; inner: React.ReactNode }) {
  const found = useRows('workflow', [`SELECT * FROM workflow WHERE id = ${id}`], (row) => row.id === id, `${id}`);
  const row = found.rows[0];
  const node = (
    <li>
      {row ? <Name row={row} /> : <span className="quiet">#{`${id}`} {found.ready ? 'is deleted' : ''}</span>}
      <ul>{inner}</ul>
    </li>
  );
  return row?.parent_id !== undefined ? <Ancestor id={row.parent_id} inner={node} /> : node;
}

function Own({ row, childRows }: { row: Row; childRows: Row[] }) {
  return (
    <li className="is-self">
      <Name row={row} self />
      <Children rows={childRows} />
    </li>
  );
}

function Children({ rows }: { rows: Row[] }) {
  if (rows.length === 0) return null;
  const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return (
    <ul>
      {sorted.slice(0, SHOWN_MAX).map((child) => (
        <Child key={`${child.id}`} row={child} />
      ))}
      {rows.length > SHOWN_MAX && <li className="quiet">and {rows.length - SHOWN_MAX} more</li>}
    </ul>
  );
}

function Child({ row }: { row: Row }) {
  const { description } = useDatabase();
  const [open, setOpen] = useState(false);
  const id = row.id as bigint;
  const mayHave = (description.workflows?.[row.workflow_type]?.children.length ?? 0) > 0;
  const children = useRows('workflow', open ? [`SELECT * FROM workflow WHERE parent_id = ${id}`] : [], (one) => one.parent_id === id, `${open}`);
  return (
    <li>
      <Name row={row} />
      {mayHave && (
        <button className="link" onClick={() => setOpen(!open)}>
          {open ? 'close' : 'children'}
        </button>
      )}
      {open && children.ready && (children.rows.length ? <Children rows={children.rows} /> : <span className="quiet"> none</span>)}
    </li>
  );
}

function Name({ row, self = false }: { row: Row; self?: boolean }) {
  const { name: database } = useDatabase();
  const text = (
    <>
      {row.workflow_type} <span className="quiet">#{`${row.id}`}</span>
    </>
  );
  return (
    <span className="family-name" data-id={`${row.id}`} data-status={row.status.tag}>
      {self ? <strong>{text}</strong> : <a href={href(database, 'workflows', row.id)}>{text}</a>}
      <Status status={row.status.tag} />
    </span>
  );
}
