// What libraries tell of a module beside its tables and functions (`/describe`): here, its workflows.

/** A type as JSON; see `workflow_module/json_shapes.py`. */
export type Shape = { type: string } & (
  | { kind: 'null' | 'boolean' | 'integer' | 'number' | 'text' | 'base64' | 'time' | 'date' | 'duration' | 'uuid' | 'decimal' | 'json' }
  | { kind: 'option' | 'list'; of: Shape }
  | { kind: 'enum'; values: (string | number)[] }
  | { kind: 'struct'; fields: ShapeField[] }
);

export interface ShapeField {
  name: string;
  shape: Shape;
  /** There when the field may be left out. */
  default?: unknown;
}

export interface Source {
  file: string;
  first_line: number;
  text: string;
  points: { label: string; line: number; kind: string }[];
  variables: Record<string, string>;
}

export interface WorkflowInfo {
  version: number;
  doc: string;
  module: string;
  init: Shape;
  result: Shape;
  signals: Record<string, Shape>;
  timers: string[];
  procedures: string[];
  children: string[];
  source: Source;
  subroutines: Record<string, Source>;
}

export interface Description {
  module: string;
  workflows?: Record<string, WorkflowInfo>;
  workflows_testing?: boolean;
  workflows_journal?: boolean;
}
