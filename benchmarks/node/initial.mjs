// Subscribing to a large table while another client calls: node initial.mjs URI ACCOUNTS
import { connect, percentiles, report, subscribe, transfer } from './bank.mjs';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

if (isMainThread) {
  const [uri, accounts] = process.argv.slice(2);
  const player = new Worker(new URL(import.meta.url), { workerData: { uri, accounts: Number(accounts) } });
  await new Promise((resolve) => player.once('message', resolve));
  const connection = await connect(uri);
  const began = performance.now();
  await subscribe(connection);
  const seconds = (performance.now() - began) / 1000;
  player.postMessage('stop');
  const samples = await new Promise((resolve) => player.once('message', resolve));
  const rows = Number(connection.db.account.count());
  report({ per_second: Math.round(rows / seconds), seconds, rows, ...percentiles(samples), max_ms: Math.max(...samples) });
} else {
  const connection = await connect(workerData.uri, (builder) => builder.withConfirmedReads(false));
  let stop = false;
  parentPort.once('message', () => (stop = true));
  parentPort.postMessage('ready');
  const samples = [];
  while (!stop) {
    const before = performance.now();
    await connection.reducers.transfer(transfer(workerData.accounts));
    samples.push(performance.now() - before);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  parentPort.postMessage(samples);
}
