// Drawn for this page, on a grid of 16.

const PATHS = {
  flow: 'M3 3h4v4H3zM9 9h4v4H9zM5 7v4h4',
  table: 'M2.5 3h11v10h-11zM2.5 6.3h11M6.5 6.3V13',
  sql: 'M4 5.5 7 8l-3 2.5M8.5 11H12',
  call: 'M9 2 4 9h4l-1 5 5-7H8z',
  server: 'M2 11.5h2.5L6.5 4l3 9 2-5.5h2.5',
  logs: 'M3 4h10M3 7h7M3 10h10M3 13h5',
  search: 'M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.5 3.5',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3l2 1.5',
  mail: 'M2.5 4h11v8h-11zM2.5 4.5 8 9l5.5-4.5',
  ear: 'M4 12a5.7 5.7 0 0 1 0-8M12 4a5.7 5.7 0 0 1 0 8M8 6.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z',
  gear: 'M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 2v2M8 12v2M2 8h2M12 8h2M3.8 3.8l1.4 1.4M10.8 10.8l1.4 1.4M3.8 12.2l1.4-1.4M10.8 5.2l1.4-1.4',
  tree: 'M4 2.5v11M4 5h5M4 10.5h5M9 3.5h4v3H9zM9 9h4v3H9z',
  back: 'M9.5 3.5 5 8l4.5 4.5',
  play: 'M5 3.5v9l7-4.5z',
  stop: 'M4.5 4.5h7v7h-7z',
  redo: 'M12.5 6A5 5 0 1 0 13 9M12.8 2.8V6H9.5',
  plus: 'M8 3.5v9M3.5 8h9',
  close: 'M4 4l8 8M12 4l-8 8',
  bin: 'M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  keys: 'M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h-.01M5 9.3h6',
  out: 'M6.5 3h-3v10h3M7 8h6.5M11 5.5 13.5 8 11 10.5',
  warn: 'M8 2.5 14 13H2zM8 6.5v3M8 11.3v.1',
  lock: 'M4 7.5h8V13H4zM5.5 7.5V5.5a2.5 2.5 0 0 1 5 0v2',
  down: 'M8 3v8M4.5 7.5 8 11l3.5-3.5M3.5 13.5h9',
  code: 'M6 4 2.5 8 6 12M10 4l3.5 4-3.5 4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} fill="none" stroke="currentColor" strokeWidth="1.25" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
