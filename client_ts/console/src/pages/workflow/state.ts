// A workflow's state as one looks at it: its init, its variables, and those of the subroutines that it is in.

import type { Source, WorkflowInfo } from '../../live/description';
import { bytesText, parseExact } from '../../module/values';

export interface State {
  values: Record<string, unknown>;
  /** The innermost function: the workflow itself, or a subroutine. */
  subroutine: string | null;
}

export function readState(data: Uint8Array): State {
  const text = bytesText(data);
  if (!text) return { values: {}, subroutine: null };
  let json: Record<string, unknown>;
  try {
    json = parseExact(text);
  } catch {
    return { values: { state: text }, subroutine: null };
  }
  const values = variables(json);
  let subroutine: string | null = null;
  for (const frame of (json.$frames as Record<string, unknown>[] | undefined) ?? []) {
    subroutine = String(frame.$subroutine);
    values[`${subroutine}()`] = variables(frame);
  }
  return { values, subroutine };
}

function variables(frame: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(frame).filter(([name]) => !name.startsWith('$')));
}

/** The code that a state is in, and its line there. */
export function placeOf(info: WorkflowInfo | undefined, state: State, step: string): { source: Source; line: number | null } | null {
  const source = state.subroutine !== null ? info?.subroutines[state.subroutine] : info?.source;
  if (!source) return null;
  const label = step.split(' > ').at(-1);
  return { source, line: source.points.find((point) => point.label === label)?.line ?? null };
}
