import { useEffect, useRef, type ReactNode } from 'react';
import { Icon, type IconName } from './icons';

export function Panel({ icon, title, note, children, className = '' }: { icon: IconName; title: string; note?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={`panel ${className}`} aria-label={title}>
      <header className="panel-head">
        <Icon name={icon} size={15} />
        <h2>{title}</h2>
        {note !== undefined && <div className="panel-note">{note}</div>}
      </header>
      <div className="panel-body">{children}</div>
    </section>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} size={26} />
      {title && <h3>{title}</h3>}
      {children && <div>{children}</div>}
    </div>
  );
}

export function Waiting({ children = 'Loading' }: { children?: ReactNode }) {
  return (
    <div className="empty" role="status">
      <i className="spinner" />
      <div>{children}</div>
    </div>
  );
}

export function Mistake({ children, title }: { children: ReactNode; title?: string }) {
  return (
    <div className="mistake" role="alert">
      <Icon name="warn" />
      <div>
        {title && <strong>{title}</strong>}
        <div className="mistake-text">{children}</div>
      </div>
    </div>
  );
}

const TONES: Record<string, string> = {
  Suspended: 'frost',
  Cancelling: 'gold',
  Completed: 'leaf',
  Failed: 'blood',
  Cancelled: 'quiet',
  Pending: 'frost',
  Running: 'gold',
};

export function Status({ status }: { status: string }) {
  return <span className={`status tone-${TONES[status] ?? 'quiet'}`}>{status}</span>;
}

/** A window over the page. Escape and a click beside it close it. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const node = dialog.current!;
    if (!node.open) node.showModal();
    if (!node.querySelector('[autofocus], .button-danger')) {
      node.querySelector<HTMLElement>('.dialog-body :is(input, select, textarea), .dialog-foot .button')?.focus();
    }
    return () => node.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`dialog ${wide ? 'is-wide' : ''}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === dialog.current && onClose()}
    >
      <div className="dialog-inside">
        <header className="dialog-head">
          <h2>{title}</h2>
          <button className="icon-button" onClick={onClose} aria-label="Close">
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Whether a key was typed into a field, and is none of our business. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable || event.metaKey || event.ctrlKey || event.altKey;
}

export function useKey(handler: (event: KeyboardEvent) => void): void {
  const last = useRef(handler);
  last.current = handler;
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (!document.querySelector('dialog[open]')) last.current(event);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
}
