// What the owner may do over the same wire, and a stranger may not.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, test } from 'vitest';
import { connect, freshNumber, rejection, subscribe } from './support';

const owner = () =>
  connect((b) => b.withToken(readFileSync(path.join(inject('directory'), 'owner.token'), 'utf8').trim()));

test('the owner calls private reducers', async () => {
  const { conn } = await owner();

  await conn.callReducer('hidden', new Uint8Array());
});

test('a stranger does not, nor lifecycle and scheduled ones, whatever the token says', async () => {
  const { conn } = await connect();

  for (const reducer of ['hidden', 'ring', 'joined', 'left']) {
    await rejection(conn.callReducer(reducer, new Uint8Array()));
  }
});

test('the owner reads private tables by HTTP, a stranger does not', async () => {
  const id = freshNumber();
  const { conn, token } = await owner();
  await conn.reducers.hide({ id: BigInt(id), word: 'mellon' });
  const stranger = await connect();
  const ask = async (bearer: string) =>
    fetch(`${inject('uri')}/v1/database/${inject('database')}/sql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${bearer}` },
      body: `SELECT * FROM secret WHERE id = ${id}`,
    });

  expect(((await (await ask(token)).json()) as { rows: unknown }[])[0]?.rows).toEqual([[id, 'mellon']]);
  expect((await ask(stranger.token)).status).toBe(400);
  expect((await rejection(subscribe(stranger.conn, 'SELECT * FROM secret'))) as Error).toBeInstanceOf(Error);
});
