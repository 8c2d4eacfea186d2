import { useState } from 'react';
import { useActions } from '../act';
import type { Item } from '../bindings/types';
import { Icon, thingIcon } from '../ui/icons';
import { capital } from '../world';

export function SellForm({ item, onDone }: { item: Item; onDone: () => void }) {
  const { call } = useActions();
  const [price, setPrice] = useState(10);
  const [buyout, setBuyout] = useState(60);
  const [seconds, setSeconds] = useState(60);
  const whole = (text: string) => Math.max(0, Math.floor(Number(text) || 0));
  return (
    <form
      className="sell"
      onSubmit={(event) => {
        event.preventDefault();
        void call((r) =>
          r.sell({
            itemId: item.id,
            startingPrice: BigInt(price),
            buyoutPrice: buyout > 0 ? BigInt(buyout) : undefined,
            seconds,
          }),
        ).then((done) => done && onDone());
      }}
    >
      <b>
        <Icon name={thingIcon(item.kind)} size={18} /> Sell the {capital(item.kind).toLowerCase()}
      </b>
      <label>
        From
        <input type="number" min={1} value={price} onChange={(e) => setPrice(whole(e.target.value))} />
      </label>
      <label>
        Buyout
        <input type="number" min={0} value={buyout} onChange={(e) => setBuyout(whole(e.target.value))} />
      </label>
      <label>
        Seconds
        <input type="number" min={30} max={120} value={seconds} onChange={(e) => setSeconds(whole(e.target.value))} />
      </label>
      <button type="submit" className="button button-gold">
        Put it up
      </button>
      <button type="button" className="button" onClick={onDone}>
        Keep it
      </button>
    </form>
  );
}
