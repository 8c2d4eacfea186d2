// Where everything is on the screen. Tokens are layers that are moved every frame, by the server's clock and past
// React; so is the camera, which follows the player where the map is larger than the screen. Nothing is painted anew.

import { serverNow } from '../clock';
import { spotOf, type Spot, type World } from '../world';
import { arrange } from './labels';
import { HEIGHT, WIDTH } from './Terrain';

const CATCH_UP = 9; // how fast a token gets to where it belongs, a second
const LEAP = 220; // what is farther than this was no step
const ARRANGE_MS = 100; // how often names look for room

export class Motion {
  private readonly nodes = new Map<bigint, HTMLElement>();
  private readonly shown = new Map<bigint, Spot>();
  private left = 0;
  private top = 0;
  private aimed = false;
  private before = 0;
  private arranged = 0;
  private frame = 0;
  private size = { width: WIDTH, height: HEIGHT };

  world: World | null = null;
  land: HTMLElement | null = null;
  /** Pixels for a step. */
  scale = 1;

  readonly place = (id: bigint, node: HTMLElement | null): void => {
    if (node !== null) {
      this.nodes.set(id, node);
      this.draw(id, node, 1);
    } else {
      this.nodes.delete(id);
      this.shown.delete(id);
    }
  };

  start(): () => void {
    const step = (at: number) => {
      const seconds = Math.min(0.1, (at - this.before) / 1000);
      this.before = at;
      const part = 1 - Math.exp(-CATCH_UP * seconds);
      for (const [id, node] of this.nodes) this.draw(id, node, part);
      this.look(1 - Math.exp(-4 * seconds));
      if (at - this.arranged >= ARRANGE_MS) {
        this.arranged = at;
        this.arrange();
      }
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(this.frame);
  }

  /** The frame is so large; a step takes at least so many pixels. */
  fit(width: number, height: number, closest: number): void {
    this.size = { width, height };
    this.scale = Math.max(width / WIDTH, height / HEIGHT, closest);
    this.aimed = false;
    for (const [id, node] of this.nodes) {
      this.shown.delete(id);
      this.draw(id, node, 1);
    }
  }

  /** Where a token is drawn now. */
  at(id: bigint): Spot | undefined {
    return this.shown.get(id);
  }

  /** From steps to pixels of the frame. */
  toFrame(spot: Spot): Spot {
    return { x: spot.x * this.scale - this.left, y: spot.y * this.scale - this.top };
  }

  /** From pixels of the frame to steps. */
  toLand(point: Spot): Spot {
    return { x: (point.x + this.left) / this.scale, y: (point.y + this.top) / this.scale };
  }

  private draw(id: bigint, node: HTMLElement, part: number): void {
    const who = this.world?.characters.get(id < 0n ? -id : id); // what hangs on somebody has the number negated
    if (this.world === null || who === undefined) return;
    const goal = spotOf(this.world, who, serverNow());
    const old = this.shown.get(id);
    const far = old === undefined ? Infinity : Math.hypot(goal.x - old.x, goal.y - old.y);
    if (far === 0) return;
    const there = far < 0.5 || far > LEAP;
    const now =
      old === undefined || there
        ? { x: goal.x, y: goal.y }
        : { x: old.x + (goal.x - old.x) * part, y: old.y + (goal.y - old.y) * part };
    this.shown.set(id, now);
    const digits = there ? 0 : 1; // what stands, stands on whole pixels, and is sharp
    node.style.transform = `translate3d(${(now.x * this.scale).toFixed(digits)}px, ${(now.y * this.scale).toFixed(digits)}px, 0)`;
  }

  private arrange(): void {
    if (this.land === null || this.size.width === 0) return;
    const { left, top, scale } = this;
    const frame = { left, top, right: left + this.size.width, bottom: top + this.size.height };
    const { nodes, land } = this;
    arrange({ nodes, land, frame, scale, me: this.world?.me?.id, at: (id) => this.shown.get(id) });
  }

  private look(part: number): void {
    if (this.land === null) return;
    const { width, height } = this.size;
    const me = this.world?.me;
    const aim = (me && this.shown.get(me.id)) ?? { x: WIDTH / 2, y: HEIGHT / 2 };
    const left = within(aim.x * this.scale - width / 2, WIDTH * this.scale - width);
    const top = within(aim.y * this.scale - height / 2, HEIGHT * this.scale - height);
    const by = this.aimed ? part : 1;
    if (me !== undefined) this.aimed = true;
    if (by < 1 && Math.abs(left - this.left) < 0.1 && Math.abs(top - this.top) < 0.1) return;
    this.left += (left - this.left) * by;
    this.top += (top - this.top) * by;
    this.land.style.transform = `translate3d(${(-this.left).toFixed(1)}px, ${(-this.top).toFixed(1)}px, 0)`;
  }
}

function within(value: number, most: number): number {
  return Math.min(Math.max(0, most), Math.max(0, value));
}
