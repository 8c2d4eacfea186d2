// A list that has only the rows that are in sight, however many there are.

import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type ReactNode, type Ref } from 'react';

/** Browsers cannot show elements that are higher; with 28 pixels a row this is 500,000 rows. */
const HEIGHT_MAX = 14_000_000;
const OVERSCAN = 8;

export interface ListHandle {
  show: (index: number) => void;
  toEnd: () => void;
  focus: () => void;
}

interface Props {
  count: number;
  rowHeight: number;
  row: (index: number) => ReactNode;
  head?: ReactNode;
  label: string;
  className?: string;
  /** Is told which rows are in sight. */
  onRange?: (first: number, last: number) => void;
  onScroll?: (atEnd: boolean) => void;
  handle?: Ref<ListHandle>;
  children?: ReactNode;
  role?: string;
}

export function VirtualList({ count, rowHeight, row, head, label, className = '', onRange, onScroll, handle, children, role = 'table' }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const headBox = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const shown = Math.min(count, Math.floor(HEIGHT_MAX / rowHeight));

  const measure = (): void => {
    const node = box.current;
    if (!node) return;
    const first = Math.max(0, Math.floor(node.scrollTop / rowHeight) - OVERSCAN);
    const last = Math.ceil((node.scrollTop + node.clientHeight) / rowHeight) + OVERSCAN;
    setRange((now) => (now[0] === first && now[1] === last ? now : [first, last]));
  };

  useLayoutEffect(measure, [count, rowHeight]);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    return () => observer.disconnect();
    // once
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  const [first, last] = [Math.min(range[0], Math.max(0, shown - 1)), Math.min(range[1], shown)];
  useEffect(() => onRange?.(first, last), [first, last, onRange]);
  useImperativeHandle(handle, () => ({
    show: (index) => {
      const node = box.current!;
      const top = index * rowHeight;
      const headHeight = headBox.current?.offsetHeight ?? 0;
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top + rowHeight + headHeight > node.scrollTop + node.clientHeight) node.scrollTop = top + rowHeight + headHeight - node.clientHeight;
    },
    toEnd: () => {
      box.current!.scrollTop = box.current!.scrollHeight;
    },
    focus: () => box.current!.focus({ preventScroll: true }),
  }));

  const rows: ReactNode[] = [];
  for (let index = first; index < last; index += 1) rows.push(row(index));
  return (
    <div
      ref={box}
      className={`list ${className}`}
      role={role}
      aria-label={label}
      aria-rowcount={count}
      tabIndex={0}
      onScroll={(event) => {
        measure();
        const node = event.currentTarget;
        onScroll?.(node.scrollTop + node.clientHeight >= node.scrollHeight - rowHeight);
      }}
    >
      {head && (
        <div className="list-head" ref={headBox} role="row">
          {head}
        </div>
      )}
      {children}
      <div className="list-body" role="rowgroup" style={{ height: shown * rowHeight }}>
        <div className="list-rows" style={{ transform: `translateY(${first * rowHeight}px)` }}>{rows}</div>
      </div>
      {shown < count && <p className="list-rest">The first {shown.toLocaleString('en')} are shown. Filter to see others.</p>}
    </div>
  );
}
