// Whether the server is well, and how busy it is.

import { useMemo } from 'react';
import { useDatabase, useMetrics } from '../live/hooks';
import type { Sample } from '../live/metrics';
import { Chart } from '../ui/Chart';
import { Mistake, Waiting } from '../ui/parts';
import { bytes, grouped, seconds } from '../ui/time';
import { useHealth } from './health';

export function ServerPage() {
  const { name } = useDatabase();
  const metrics = useMetrics();
  const health = useHealth();
  const { samples } = metrics;
  const times = useMemo(() => samples.map(({ at }) => at), [samples]);
  const line = (pick: (sample: Sample) => number | null, tone = 'gold', title = ''): { name: string; values: (number | null)[]; tone: string } => ({ name: title, values: samples.map(pick), tone });
  const last = samples.at(-1);
  if (!last) return metrics.error ? <Mistake title="The server's numbers do not come">{metrics.error}</Mistake> : <Waiting />;
  const calls = metrics.calls.toSorted((a, b) => b.perSecond - a.perSecond || b.count - a.count);
  return (
    <div className="page server">
      <header className="bar">
        <h2>Server</h2>
        <span className={`health ${health === null ? '' : health.well ? 'is-well' : 'is-ill'}`} data-testid="health">
          {health === null ? 'asking' : health.well ? 'Healthy' : 'Not well'}
        </span>
        {health && Object.entries(health.numbers).map(([key, value]) => (
          <span key={key} className="muted">
            {key.replaceAll('_', ' ')} <b>{value}</b>
          </span>
        ))}
      </header>
      {metrics.error && <Mistake title="The server's numbers do not come">{metrics.error}</Mistake>}
      {health?.problems.map((problem) => <Mistake key={problem}>{problem}</Mistake>)}
      <div className="charts">
        <Chart title="Transactions" lines={[line((s) => s.transactionsPerSecond)]} times={times} format={(value) => `${value < 10 ? value.toFixed(1) : grouped(value)} /s`} />
        <Chart title="Latency" lines={[line((s) => s.p99, 'ember', 'p99'), line((s) => s.p50, 'frost', 'p50')]} times={times} format={seconds} note="of transactions" />
        <Chart title="Connections" lines={[line((s) => s.connections, 'leaf', 'open'), line((s) => s.liveQueries, 'violet', 'queries')]} times={times} format={grouped} />
        <Chart title="Queued for clients" lines={[line((s) => s.queuedBytes, 'frost')]} times={times} format={bytes} />
        <Chart title="Flush lag" lines={[line((s) => s.flushLag, 'frost')]} times={times} format={seconds} limit={5} note={`${grouped(last.behind)} not on disk yet`} />
        <Chart title="Overdue timers" lines={[line((s) => s.overdue, 'gold')]} times={times} format={seconds} limit={5} note="the oldest that should have fired" />
        <Chart title="Delivery lag" lines={[line((s) => s.deliveryLag, 'frost')]} times={times} format={seconds} limit={5} note="the oldest unsent update" />
        <Chart title="Memory" lines={[line((s) => s.memory, 'violet')]} times={times} format={bytes} note={`of the process; ${(last.cpu * 100).toFixed(0)} % of a core`} />
      </div>
      <section className="server-calls" aria-label="Calls">
        <h3>What runs in {name}</h3>
        <table className="plain">
          <thead>
            <tr>
              <th>Reducer</th>
              <th className="right">per second</th>
              <th className="right">since the start</th>
              <th className="right">mean</th>
              <th className="right">p99</th>
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <tr key={call.name}>
                <td className="mono">{call.name}</td>
                <td className="right">{call.perSecond.toFixed(1)}</td>
                <td className="right">{grouped(call.count)}</td>
                <td className="right">{seconds(call.meanSeconds)}</td>
                <td className="right">{seconds(call.p99)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}
