import { useState } from 'react';
import { useActions } from '../act';
import type { Lot } from '../bindings/types';
import { clockText, useNow } from '../clock';
import { Icon, thingIcon } from '../ui/icons';
import { capital, ms, nameOf, thing, useWorld, type World } from '../world';
import { Empty, Panel } from './Panel';

const SNIPE_MS = 10_000;
const SHOWN_MS = 90_000;

export function AuctionPanel() {
  const world = useWorld();
  const now = useNow(500);
  const lots = [...world.lots].sort((a, b) => Number(a.endsAt.microsSinceUnixEpoch - b.endsAt.microsSinceUnixEpoch));
  const sold = world.news.filter((line) => line.text.includes(' is sold to ')).slice(-4).reverse();
  return (
    <Panel icon="gavel" title="Auction house" className="auction" note={<span className="muted">{lots.length} lots</span>}>
      <ul className="lots" data-testid="lots">
        {lots.map((lot) => (
          <LotRow key={lot.auctionId} lot={lot} world={world} now={now} />
        ))}
        {lots.length === 0 && (
          <li>
            <Empty icon="gavel">Nothing is up for sale. Tap a thing in your bag to sell it.</Empty>
          </li>
        )}
        {sold.length > 0 && (
          <li className="sold" aria-label="Sold lately">
            {sold.map((line) => (
              <p key={line.id}>{line.text}</p>
            ))}
          </li>
        )}
      </ul>
    </Panel>
  );
}

function LotRow({ lot, world, now }: { lot: Lot; world: World; now: number }) {
  const { call } = useActions();
  const [offer, setOffer] = useState<string | null>(null);
  const me = world.me;
  const kind = thing(world, lot.itemId);
  const left = ms(lot.endsAt) - now;
  const mine = lot.seller === me?.id;
  const leading = lot.leader !== undefined && lot.leader === me?.id;
  const amount = offer !== null && Number(offer) > Number(lot.asking) ? BigInt(Math.floor(Number(offer))) : lot.asking;
  const over = left <= 0;
  return (
    <li
      className={`lot ${leading ? 'is-leading' : ''} ${left < SNIPE_MS ? 'is-closing' : ''}`}
      data-testid={`lot-${lot.auctionId}`}
      data-asking={String(lot.asking)}
    >
      <div className="lot-thing">
        <Icon name={thingIcon(kind)} size={22} />
      </div>
      <div className="lot-what">
        <b>{capital(kind)}</b>
        <span className="muted">from {nameOf(world, lot.seller)}</span>
      </div>
      <div className="lot-bid">
        {lot.leader === undefined ? (
          <span className="muted">no bid yet</span>
        ) : (
          <>
            <b key={String(lot.asking)} className="price">
              {String(lot.asking - 1n)}
            </b>
            <span className={leading ? 'lead' : 'muted'}>{leading ? 'you lead' : nameOf(world, lot.leader)}</span>
          </>
        )}
      </div>
      <time className="lot-time">{clockText(left)}</time>
      <form
        className="lot-acts"
        onSubmit={(event) => {
          event.preventDefault();
          void call((r) => r.placeBid({ auctionId: lot.auctionId, amount })).then(() => setOffer(null));
        }}
      >
        {mine ? (
          <button type="button" className="button button-small" disabled={over || lot.leader !== undefined} onClick={() => void call((r) => r.withdraw({ auctionId: lot.auctionId }))}>
            Withdraw
          </button>
        ) : (
          <>
            <input
              type="number"
              inputMode="numeric"
              aria-label={`Your bid for the ${kind}`}
              min={Number(lot.asking)}
              value={offer ?? String(lot.asking)}
              disabled={over || leading}
              onChange={(event) => setOffer(event.target.value)}
            />
            <button type="submit" className="button button-small button-gold" disabled={over || leading} data-testid={`bid-${lot.auctionId}`}>
              Bid
            </button>
            {lot.buyoutPrice !== undefined && (
              <button
                type="button"
                className="button button-small"
                disabled={over}
                title={`Buy it now for ${lot.buyoutPrice}`}
                onClick={() => void call((r) => r.buyOut({ auctionId: lot.auctionId }))}
              >
                Buy {String(lot.buyoutPrice)}
              </button>
            )}
          </>
        )}
      </form>
      <i className="lot-left" style={{ transform: `scaleX(${Math.max(0, Math.min(1, left / SHOWN_MS))})` }} />
    </li>
  );
}
