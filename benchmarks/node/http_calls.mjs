// Transfers over HTTP, pipelined: node http_calls.mjs URL CONNECTIONS IN_FLIGHT SECONDS ACCOUNTS
import { Client } from 'undici';
import { percentiles, report } from './bank.mjs';

const [url, connections, inFlight, seconds, accounts] = process.argv.slice(2);
const samples = [];
let done = 0;
const began = performance.now();
const until = began + Number(seconds) * 1000;

async function stream(client) {
  while (performance.now() < until) {
    const source = Math.floor(Math.random() * accounts);
    const target = (source + 1 + Math.floor(Math.random() * (accounts - 1))) % accounts;
    const before = performance.now();
    const { body, statusCode } = await client.request({ path: '/', method: 'POST', body: JSON.stringify([source, target, 1]), idempotent: true });
    await body.dump();
    if (statusCode !== 200) {
      throw new Error(`status ${statusCode}`);
    }
    done += 1;
    samples.push(performance.now() - before);
  }
}

const clients = Array.from({ length: Number(connections) }, () => new Client(url, { pipelining: Number(inFlight) }));
await Promise.all(clients.flatMap((client) => Array.from({ length: Number(inFlight) }, () => stream(client))));
report({ per_second: Math.round(done / ((performance.now() - began) / 1000)), ...percentiles(samples) });
