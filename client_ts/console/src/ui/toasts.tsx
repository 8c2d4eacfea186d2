import { useEffect, useSyncExternalStore } from 'react';
import { Icon } from './icons';

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

let toasts: Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function change(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function say(text: string, bad = false): void {
  const id = (count += 1);
  change([...toasts.slice(-3), { id, text, bad }]);
}

function One({ toast }: { toast: Toast }) {
  const close = (): void => change(toasts.filter(({ id }) => id !== toast.id));
  useEffect(() => {
    const timer = setTimeout(close, toast.bad ? 12_000 : 4000);
    return () => clearTimeout(timer);
  });
  return (
    <div className={`toast ${toast.bad ? 'toast-bad' : ''}`} role={toast.bad ? 'alert' : 'status'}>
      <span>{toast.text}</span>
      <button className="icon-button" onClick={close} aria-label="Dismiss">
        <Icon name="close" size={13} />
      </button>
    </div>
  );
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts">
      {shown.map((toast) => (
        <One key={toast.id} toast={toast} />
      ))}
    </div>
  );
}
