// A small line over time. Beneath the pointer it tells the value.

import { useRef, useState } from 'react';

const WIDTH = 300;
const HEIGHT = 64;

interface Line {
  name: string;
  values: (number | null)[];
  tone: string;
}

interface Props {
  title: string;
  lines: Line[];
  times: number[];
  format: (value: number) => string;
  /** A value that is bad: the chart says so when it is reached. */
  limit?: number;
  note?: string;
}

export function Chart({ title, lines, times, format, limit, note }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const box = useRef<SVGSVGElement>(null);
  const all = lines.flatMap(({ values }) => values.filter((value): value is number => value !== null));
  const most = Math.max(...all, 0);
  const top = most * 1.15 || 1;
  const count = Math.max(times.length - 1, 1);
  const x = (index: number): number => (index / count) * WIDTH;
  const y = (value: number): number => HEIGHT - 2 - (value / top) * (HEIGHT - 6);
  const path = (values: (number | null)[]): string => {
    let text = '';
    let pen = false;
    values.forEach((value, index) => {
      if (value === null) return;
      text += `${pen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = true;
    });
    return text;
  };
  const index = at ?? times.length - 1;
  const bad = limit !== undefined && (lines[0]?.values.at(-1) ?? 0) >= limit;
  return (
    <figure className={`chart ${bad ? 'is-bad' : ''}`} data-chart={title}>
      <figcaption>
        <span>{title}</span>
        <span className="chart-values">
          {lines.map(({ name, values, tone }) => (
            <b key={name} className={`tone-${tone}`}>
              {lines.length > 1 && <small>{name} </small>}
              {values[index] === null || values[index] === undefined ? '–' : format(values[index]!)}
            </b>
          ))}
        </span>
      </figcaption>
      <svg
        ref={box}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={title}
        onPointerMove={(event) => {
          const { left, width } = box.current!.getBoundingClientRect();
          setAt(Math.round(((event.clientX - left) / width) * count));
        }}
        onPointerLeave={() => setAt(null)}
      >
        {lines.map(({ name, values, tone }, number) => (
          <g key={name} className={`tone-${tone}`}>
            {number === 0 && <path className="chart-area" d={`${path(values)}L${x(times.length - 1)} ${HEIGHT}L0 ${HEIGHT}Z`} />}
            <path className="chart-line" d={path(values)} />
          </g>
        ))}
        {at !== null && <line className="chart-at" x1={x(at)} x2={x(at)} y1={0} y2={HEIGHT} />}
      </svg>
      <div className="chart-foot">
        <span>{at !== null && times[at] ? new Date(times[at]).toLocaleTimeString() : note}</span>
        {most > 0 && <span className="chart-most">{format(most)} at most</span>}
      </div>
    </figure>
  );
}
