// workflows.ts of a game with workflows: plain objects with names, and types of their JSON.
import { expect, expectTypeOf, test } from 'vitest';
import { auction, type AuctionView, type Workflows } from './generated/auction/workflows';

test('names are plain objects', () => {
  expect(auction.type).toBe('auction');
  expect(auction.signals.Bid).toBe('Bid');
  expect(Object.values(auction.timers)).toContain('end');
});

test('types describe the JSON of init, payloads and state', () => {
  expectTypeOf<Workflows[typeof auction.type]['view']>().toEqualTypeOf<AuctionView>();
  expectTypeOf<Workflows['auction']['timers']>().toExtend<string>();
  expectTypeOf<Workflows['auction']['signals']['Bid']>().toExtend<object>();
  expectTypeOf<AuctionView['init']>().toEqualTypeOf<Workflows['auction']['init']>();
});
