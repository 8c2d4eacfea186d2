// Connecting with the official SDK, and being anonymous: node connects.mjs URI COUNT CONCURRENT
import { connect, percentiles, report } from './bank.mjs';

const [uri, count, concurrent] = process.argv.slice(2).map((text, at) => (at ? Number(text) : text));
const samples = [];
let left = count;
const began = performance.now();
await Promise.all(
  Array.from({ length: concurrent }, async () => {
    while (left-- > 0) {
      const before = performance.now();
      await connect(uri);
      samples.push(performance.now() - before);
    }
  }),
);
report({ per_second: Math.round(count / ((performance.now() - began) / 1000)), ...percentiles(samples) });
