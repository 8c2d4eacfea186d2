// Transfers over the official SDK: node calls.mjs URI CONNECTIONS IN_FLIGHT SECONDS batched|single ACCOUNTS
// "batched": each connection makes IN_FLIGHT calls in one turn and waits for all of them (one websocket message).
// "single": each answer is followed by the next call, so that calls go out one by one.
import { connect, percentiles, report, transfer } from './bank.mjs';

const [uri, connections, inFlight, seconds, mode, accounts] = process.argv.slice(2);
const all = await Promise.all(Array.from({ length: Number(connections) }, () => connect(uri)));
const samples = [];
let done = 0;
const began = performance.now();
const until = began + Number(seconds) * 1000;

async function batches(connection) {
  while (performance.now() < until) {
    const before = performance.now();
    const calls = Array.from({ length: Number(inFlight) }, () => connection.reducers.transfer(transfer(Number(accounts))));
    await Promise.all(calls);
    done += calls.length;
    samples.push(performance.now() - before);
  }
}

async function singles(connection) {
  while (performance.now() < until) {
    const before = performance.now();
    await connection.reducers.transfer(transfer(Number(accounts)));
    done += 1;
    if (done % 16 === 0) {
      samples.push(performance.now() - before);
    }
  }
}

const streams = mode === 'batched' ? all.map(batches) : all.flatMap((c) => Array.from({ length: Number(inFlight) }, () => singles(c)));
await Promise.all(streams);
const took = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage();
report({ per_second: Math.round(done / took), ...percentiles(samples), client_cpu_seconds: (user + system) / 1e6 });
