// Names and speech that one can read. A name that would lie on another, on a place's or on somebody goes above its
// token, or waits until there is room; the player's own and the one pointed at never wait. Nothing leaves the frame.

import type { Spot } from '../world';

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export type Side = 'below' | 'above' | 'hidden';

/** All in pixels of the land: where the token is, and how far from there the line of its name is. */
export interface Label extends Spot {
  width: number;
  below: number;
  above: number;
  side: Side;
  /** It is shown whatever it lies on. */
  must: boolean;
}

const ASCENT = 10;
const DESCENT = 3;
const EDGE = 5;
const ROOM = 6; // a name that is hidden needs this much more, so that it does not come and go
const DISC_PART = 0.8;

export function boxOf(label: Label, side: Side, frame: Box): Box {
  const line = side === 'above' ? label.y - label.above : label.y + label.below;
  const left = label.x - label.width / 2;
  const aside = inward(left, left + label.width, frame.left, frame.right);
  return { left: left + aside, right: left + aside + label.width, top: line - ASCENT, bottom: line + DESCENT };
}

/** Where a name is put, when all of these are there already. */
export function choose(label: Label, taken: readonly Box[], frame: Box): Side {
  const sides: Side[] = label.side === 'above' ? ['above', 'below'] : ['below', 'above'];
  const room = label.side === 'hidden' ? ROOM : 0;
  const free = sides.find((side) => {
    const box = boxOf(label, side, frame);
    return box.top >= frame.top && box.bottom <= frame.bottom && !taken.some((other) => overlap(box, other, room));
  });
  return free ?? (label.must ? 'below' : 'hidden');
}

/** How far something must move to be between two edges. */
export function inward(from: number, to: number, least: number, most: number): number {
  if (from < least + EDGE) return least + EDGE - from;
  return to > most - EDGE ? most - EDGE - to : 0;
}

function overlap(a: Box, b: Box, room: number): boolean {
  return a.left - room < b.right && b.left < a.right + room && a.top - room < b.bottom && b.top < a.bottom + room;
}

interface Scene {
  nodes: ReadonlyMap<bigint, HTMLElement>;
  at: (id: bigint) => Spot | undefined;
  land: HTMLElement;
  /** What one sees of the land, in its pixels. */
  frame: Box;
  scale: number;
  me: bigint | undefined;
}

/** Look where everything is, then move the names and what is said. */
export function arrange({ nodes, at, land, frame, scale, me }: Scene): void {
  const taken: Box[] = [...land.querySelectorAll<SVGTextElement>('.place-name')].map((name) => {
    const { x, y, width, height } = name.getBBox();
    return { left: x * scale, right: (x + width) * scale, top: y * scale, bottom: (y + height) * scale };
  });
  const names: { id: bigint; text: SVGTextElement; label: Label }[] = [];
  const discs = new Map<bigint, Box>();
  const moves: (() => void)[] = [];
  for (const [id, node] of nodes) {
    const spot = at(id);
    if (spot === undefined) continue;
    const [x, y] = [spot.x * scale, spot.y * scale];
    const away = x < frame.left || x > frame.right || y < frame.top || y > frame.bottom;
    if (id < 0n) {
      const said = node.firstElementChild as HTMLElement;
      moves.push(() => (said.style.visibility = away ? 'hidden' : ''));
      if (away) continue;
      const [width, height] = [said.offsetWidth, said.offsetHeight];
      const bottom = y - parseFloat(said.style.bottom);
      const aside = inward(x - width / 2, x + width / 2, frame.left, frame.right);
      const down = Math.max(0, inward(bottom - height, bottom, frame.top, frame.bottom));
      taken.push({ left: x - width / 2 + aside, right: x + width / 2 + aside, top: bottom - height + down, bottom: bottom + down });
      moves.push(() => {
        said.style.setProperty('--aside', `${aside.toFixed(0)}px`);
        said.style.setProperty('--down', `${down.toFixed(0)}px`);
      });
      continue;
    }
    const radius = Number(node.querySelector('.token-disc')?.getAttribute('r') ?? 0);
    const half = radius * scale * DISC_PART;
    discs.set(id, { left: x - half, right: x + half, top: y - half, bottom: y + half });
    const text = node.querySelector<SVGTextElement>('.token-name');
    if (text === null) continue;
    if (away) {
      moves.push(() => (text.dataset.side = 'hidden'));
      continue;
    }
    const label: Label = {
      x,
      y,
      width: text.getComputedTextLength() * scale,
      below: Number(text.getAttribute('y')) * scale,
      above: (radius + (node.querySelector('.clash') === null ? 9 : 27)) * scale,
      side: (text.dataset.side ?? 'below') as Side,
      must: id === me || node.classList.contains('is-chosen'),
    };
    names.push({ id, text, label });
  }
  names.sort((a, b) => Number(b.label.must) - Number(a.label.must) || Number(b.id === me) - Number(a.id === me));
  for (const { id, text, label } of names) {
    const others = [...discs].filter(([other]) => other !== id).map(([, disc]) => disc);
    const side = choose(label, [...taken, ...others], frame);
    const box = boxOf(label, side, frame);
    if (side !== 'hidden') taken.push(box);
    const aside = (box.left + box.right) / 2 - label.x;
    const up = side === 'above' ? -(label.above + label.below) : 0;
    moves.push(() => {
      text.dataset.side = side;
      text.style.transform = `translate(${(aside / scale).toFixed(1)}px, ${(up / scale).toFixed(1)}px)`;
    });
  }
  for (const move of moves) move();
}
