// Moves the tokens: every frame, by the server's clock, past React. The camera follows the player where the map is
// larger than the screen.

import { serverNow } from '../clock';
import { spotOf, type Spot, type World } from '../world';
import { HEIGHT, WIDTH } from './Terrain';

const CATCH_UP = 9; // how fast a token gets to where it belongs, a second
const LEAP = 220; // what is farther than this was no step

export class Motion {
  private readonly nodes = new Map<bigint, SVGGElement>();
  private readonly shown = new Map<bigint, Spot>();
  private camera: Spot = { x: WIDTH / 2, y: HEIGHT / 2 };
  private aimed = false;
  private before = 0;
  private frame = 0;

  world: World | null = null;
  svg: SVGSVGElement | null = null;
  size = { width: WIDTH, height: HEIGHT };
  /** Pixels for a step, at least. */
  closest = 0;

  readonly place = (id: bigint, node: SVGGElement | null): void => {
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
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(this.frame);
  }

  /** Where a token is drawn now. */
  at(id: bigint): Spot | undefined {
    return this.shown.get(id);
  }

  private draw(id: bigint, node: SVGGElement, part: number): void {
    const who = this.world?.characters.get(id < 0n ? -id : id); // what hangs on somebody has the number negated
    if (this.world === null || who === undefined) return;
    const goal = spotOf(this.world, who, serverNow());
    const old = this.shown.get(id);
    const far = old === undefined ? Infinity : Math.hypot(goal.x - old.x, goal.y - old.y);
    const now =
      old === undefined || far > LEAP
        ? { x: goal.x, y: goal.y }
        : { x: old.x + (goal.x - old.x) * part, y: old.y + (goal.y - old.y) * part };
    if (old !== undefined && far < 0.05 && part < 1) return;
    this.shown.set(id, now);
    node.setAttribute('transform', `translate(${now.x.toFixed(2)} ${now.y.toFixed(2)})`);
  }

  private look(part: number): void {
    if (this.svg === null) return;
    const { width, height } = this.size;
    const scale = Math.max(width / WIDTH, height / HEIGHT, this.closest);
    const [w, h] = [width / scale, height / scale];
    const me = this.world?.me;
    const aim = (me && this.shown.get(me.id)) ?? { x: WIDTH / 2, y: HEIGHT / 2 };
    const goal = {
      x: Math.min(WIDTH - w / 2, Math.max(w / 2, aim.x)),
      y: Math.min(HEIGHT - h / 2, Math.max(h / 2, aim.y)),
    };
    const now = this.aimed ? part : 1;
    if (me !== undefined) this.aimed = true;
    this.camera = { x: this.camera.x + (goal.x - this.camera.x) * now, y: this.camera.y + (goal.y - this.camera.y) * now };
    const view = `${(this.camera.x - w / 2).toFixed(1)} ${(this.camera.y - h / 2).toFixed(1)} ${w.toFixed(1)} ${h.toFixed(1)}`;
    if (this.svg.getAttribute('viewBox') !== view) this.svg.setAttribute('viewBox', view);
  }
}
