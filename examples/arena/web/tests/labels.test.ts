import { describe, expect, it } from 'vitest';
import { boxOf, choose, inward, type Box, type Label } from '../src/map/labels';

const FRAME: Box = { left: 0, right: 400, top: 0, bottom: 300 };
const name = (change: Partial<Label> = {}): Label => ({ x: 200, y: 150, width: 60, below: 25, above: 22, side: 'below', must: false, ...change });
const UNDER = boxOf(name(), 'below', FRAME);
const OVER = boxOf(name(), 'above', FRAME);

describe('the name of a token', () => {
  it('is below it, where there is room', () => expect(choose(name(), [], FRAME)).toBe('below'));
  it('goes above it when something lies below', () => expect(choose(name(), [UNDER], FRAME)).toBe('above'));
  it('goes above it at the lower edge', () => expect(choose(name({ y: 290 }), [], FRAME)).toBe('above'));
  it('stays where it is as long as it can', () => expect(choose(name({ side: 'above' }), [], FRAME)).toBe('above'));
  it('waits while there is no room', () => expect(choose(name(), [UNDER, OVER], FRAME)).toBe('hidden'));
  it('never waits if it must be shown', () => expect(choose(name({ must: true }), [UNDER, OVER], FRAME)).toBe('below'));
  it('comes back only where there is ample room', () => {
    const beside = { ...UNDER, left: UNDER.right + 3, right: UNDER.right + 50 };
    expect(choose(name(), [beside, OVER], FRAME)).toBe('below');
    expect(choose(name({ side: 'hidden' }), [beside, OVER], FRAME)).toBe('hidden');
  });
});

describe('what would leave the frame', () => {
  it('is moved inward, and only then', () => {
    expect(inward(-20, 80, 0, 400)).toBe(25);
    expect(inward(350, 450, 0, 400)).toBe(-55);
    expect(inward(100, 200, 0, 400)).toBe(0);
  });
});
