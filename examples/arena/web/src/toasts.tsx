// Short messages over the page: why the server refused something, and what it tells this player.

import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from 'react';
import { Icon, type IconName } from './ui/icons';

export type Tone = 'error' | 'info' | 'gold';

interface Toast {
  id: number;
  tone: Tone;
  text: string;
}

const SHOWN_MS = 4500;
const SHOWN_MAX = 4;
const ICONS: Record<Tone, IconName> = { error: 'cross', info: 'scroll', gold: 'gavel' };

const Context = createContext<(tone: Tone, text: string) => void>(() => undefined);

export function useToast(): (tone: Tone, text: string) => void {
  return useContext(Context);
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(1);
  const add = useCallback((tone: Tone, text: string) => {
    const id = next.current++;
    setToasts((old) => [...old.filter((t) => t.text !== text), { id, tone, text }].slice(-SHOWN_MAX));
    setTimeout(() => setToasts((old) => old.filter((t) => t.id !== id)), SHOWN_MS);
  }, []);
  const list = useMemo(
    () =>
      toasts.map((toast) => (
        <div key={toast.id} className={`toast toast-${toast.tone}`} role={toast.tone === 'error' ? 'alert' : 'status'}>
          <Icon name={ICONS[toast.tone]} size={16} />
          <span>{toast.text}</span>
        </div>
      )),
    [toasts],
  );
  return (
    <Context.Provider value={add}>
      {children}
      <div className="toasts" aria-live="polite">
        {list}
      </div>
    </Context.Provider>
  );
}
