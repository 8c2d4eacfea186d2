// Many plain websockets that note how old what they get is: node fanout.mjs URI CLIENTS SECONDS gamedb|broadcast CONFIRMED
// They decode only as much as they must, so that the time measured is the server's. A row is 24 bytes, the last 8 of
// them the time at which the server made it; in a broadcast the time is the first 8 bytes.
import { WebSocket } from 'undici';
import { percentiles, report } from './bank.mjs';

const [uri, clients, seconds, system, confirmed] = process.argv.slice(2);
const ROW_BYTES = 24;
const now = () => (performance.timeOrigin + performance.now()) * 1000;
let measuring = false;
const counts = new Array(Number(clients)).fill(0);
const samples = [];

function note(index, micros) {
  if (measuring) {
    counts[index] += 1;
    samples.push((now() - Number(micros)) / 1000);
  }
}

/** The rows of each inserted list in a run of TransactionUpdates of one table with rows of fixed size. */
function updates(index, view) {
  let at = 1;
  while (at < view.byteLength) {
    const tag = view.getUint8(at);
    if (tag !== 4) {
      return; // InitialConnection, SubscribeApplied
    }
    at += 1 + 4 + 4 + 4; // one query set: its id, one table
    at += 4 + view.getUint32(at, true) + 4 + 1; // its name, one list of changes, that of a stored table
    for (const inserted of [true, false]) {
      const bytes = view.getUint32(at + 3, true);
      at += 7;
      if (inserted) {
        note(index, view.getBigInt64(at + ROW_BYTES - 8, true));
      }
      at += bytes;
    }
  }
}

function follow(index) {
  return new Promise((resolve, reject) => {
    const url = system === 'gamedb' ? `${uri}/v1/database/crowd/subscribe?compression=None&confirmed=${confirmed}` : uri;
    const socket = new WebSocket(url, system === 'gamedb' ? ['v3.bsatn.spacetimedb'] : []);
    socket.binaryType = 'arraybuffer';
    socket.onerror = (event) => reject(event.error ?? new Error('refused'));
    socket.onopen = () => {
      if (system === 'gamedb') {
        const text = new TextEncoder().encode('SELECT * FROM mover');
        const message = new DataView(new ArrayBuffer(17 + text.length));
        message.setUint32(9, 1, true);
        message.setUint32(13, text.length, true);
        new Uint8Array(message.buffer).set(text, 17);
        socket.send(message.buffer);
      }
      resolve();
    };
    socket.onmessage = (event) => {
      const view = new DataView(event.data);
      if (system === 'gamedb') {
        updates(index, view);
      } else {
        note(index, view.getBigInt64(0, true));
      }
    };
  });
}

for (let index = 0; index < Number(clients); index += 50) {
  await Promise.all(Array.from({ length: Math.min(50, clients - index) }, (_, i) => follow(index + i)));
}
await new Promise((resolve) => setTimeout(resolve, 2000));
const before = process.cpuUsage();
measuring = true;
await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1000));
measuring = false;
const { user, system: kernel } = process.cpuUsage(before);
report({
  per_second: Math.round(samples.length / Number(seconds)),
  ...percentiles(samples),
  least_of_a_client: Math.min(...counts),
  most_of_a_client: Math.max(...counts),
  client_cpu_share: (user + kernel) / 1e6 / Number(seconds),
});
