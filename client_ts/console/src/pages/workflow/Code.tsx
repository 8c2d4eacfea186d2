// The source of a workflow, with the line where it waits marked and brought into sight.

import { useEffect, useRef, type ReactNode } from 'react';
import type { Source } from '../../live/description';

const TOKEN =
  /(?<comment>#.*)|(?<string>[rbfu]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))|(?<decorator>^\s*@[\w.]+)|(?<keyword>\b(?:async|def|await|return|if|elif|else|for|while|in|not|and|or|is|try|except|finally|raise|with|as|match|case|break|continue|pass|None|True|False|lambda|from|import|assert|class|del|nonlocal|global|yield)\b)|(?<number>\b\d[\d_.]*\b)/gm;

function coloured(line: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let at = 0;
  for (const match of line.matchAll(TOKEN)) {
    if (match.index > at) parts.push(line.slice(at, match.index));
    const kind = Object.entries(match.groups!).find(([, text]) => text !== undefined)![0];
    const name = match[0] === 'await' ? 'await' : kind === 'number' ? 'literal' : kind;
    parts.push(
      <span key={match.index} className={`code-${name}`}>
        {match[0]}
      </span>,
    );
    at = match.index + match[0].length;
  }
  parts.push(line.slice(at));
  return parts;
}

export function Code({ source, line, failed }: { source: Source; line: number | null; failed: boolean }) {
  const marked = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [node, parent] = [marked.current, box.current];
    if (!node || !parent) return;
    const top = node.offsetTop - parent.offsetTop;
    if (top < parent.scrollTop + 20 || top > parent.scrollTop + parent.clientHeight - 40) parent.scrollTop = top - parent.clientHeight / 3;
  }, [line, source]);
  const points = new Set(source.points.map((point) => point.line));
  let inText = false;
  return (
    <div className="code" ref={box} tabIndex={0} aria-label="Source">
      {source.text.split('\n').map((text, at) => {
        const number = source.first_line + at;
        const here = number === line;
        const quotes = (text.match(/"""|'''/g) ?? []).length;
        const isText = inText || quotes > 0;
        if (quotes % 2 === 1) inText = !inText;
        return (
          <div key={number} ref={here ? marked : undefined} className={`code-line ${here ? (failed ? 'is-failed' : 'is-here') : ''} ${points.has(number) ? 'is-point' : ''}`} aria-current={here ? 'step' : undefined}>
            <span className="code-number">{number}</span>
            <span className="code-text">{isText ? <span className="code-string">{text}</span> : coloured(text)}</span>
          </div>
        );
      })}
    </div>
  );
}
