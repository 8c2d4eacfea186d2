// What an operator can do to a workflow. Each says what came of it.

import { useState, type ReactNode } from 'react';
import type { Shape } from '../../live/description';
import { useDatabase } from '../../live/hooks';
import type { Row } from '../../module/values';
import { Fields, formOfShape, jsonText, useForm, type FormType } from '../../ui/form';
import { Icon } from '../../ui/icons';
import { Dialog, Mistake } from '../../ui/parts';
import { say } from '../../ui/toasts';

/** Call a reducer; its error as text, or null when it has committed. */
export function useCall(): (name: string, params: Row, done: string) => Promise<string | null> {
  const { link } = useDatabase();
  return async (name, params, done) => {
    try {
      await link.call(name, params);
      say(done);
      return null;
    } catch (error) {
      return (error as Error).message || 'The call failed; the log says why.';
    }
  };
}

/** A button that calls at once, and shows an error beside the page. */
export function ActionButton({ name, params, done, children, title, className = '' }: { name: string; params: Row; done: string; children: ReactNode; title?: string; className?: string }) {
  const call = useCall();
  const [busy, setBusy] = useState(false);
  return (
    <button
      className={`button ${className}`}
      title={title}
      disabled={busy}
      onClick={async () => {
        setBusy(true);
        const error = await call(name, params, done);
        setBusy(false);
        if (error !== null) say(error, true);
      }}
    >
      {children}
    </button>
  );
}

interface ConfirmProps {
  title: string;
  children: ReactNode;
  label: string;
  name: string;
  params: Row;
  done: string;
  onClose: (called: boolean) => void;
}

export function Confirm({ title, children, label, name, params, done, onClose }: ConfirmProps) {
  const call = useCall();
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  return (
    <Dialog title={title} onClose={() => onClose(false)}>
      <div className="dialog-body">
        {children}
        {error !== null && <Mistake>{error}</Mistake>}
      </div>
      <footer className="dialog-foot">
        <button className="button" onClick={() => onClose(false)}>
          Leave it
        </button>
        <button
          className="button button-danger"
          autoFocus
          disabled={busy}
          onClick={async () => {
            setBusy(true);
            const found = await call(name, params, done);
            setBusy(false);
            if (found === null) onClose(true);
            else setError(found);
          }}
        >
          {label}
        </button>
      </footer>
    </Dialog>
  );
}

/** A form for a value that is sent as JSON. `send` gives an error, or null. */
export function ShapeForm({ shape, button, send, before }: { shape: Shape; button: string; send: (json: string) => Promise<string | null>; before?: ReactNode }) {
  const [type] = useState<FormType>(() => formOfShape(shape));
  const form = useForm(type);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    const checked = form.check();
    setError(null);
    if (checked === null) return;
    setBusy(true);
    const found = await send(shape.kind === 'null' ? 'null' : jsonText(checked.value));
    setBusy(false);
    if (found !== null && !form.refuse(found)) setError(found);
  };
  return (
    <form
      className="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div className="dialog-body">
        {before}
        {type.kind === 'struct' ? (
          type.fields.length ? (
            <Fields fields={type.fields} {...form.props} />
          ) : (
            <p className="quiet">It has no fields.</p>
          )
        ) : (
          <Fields fields={[{ name: '', type }]} {...form.props} />
        )}
        {error !== null && <Mistake>{error}</Mistake>}
      </div>
      <footer className="dialog-foot">
        <button className="button button-main" disabled={busy}>
          {button}
        </button>
      </footer>
    </form>
  );
}

interface SignalProps {
  id: bigint;
  type: string;
  signals: Record<string, Shape>;
  awaited: string[];
  onClose: () => void;
}

export function SignalDialog({ id, type, signals, awaited, onClose }: SignalProps) {
  const call = useCall();
  const names = Object.keys(signals).sort((a, b) => Number(awaited.includes(b)) - Number(awaited.includes(a)) || a.localeCompare(b));
  const [name, setName] = useState(names[0] ?? '');
  const shape = signals[name];
  return (
    <Dialog title={`Signal ${type} #${id}`} onClose={onClose}>
      {shape === undefined ? (
        <p className="dialog-body quiet">The code of {type} knows no signals.</p>
      ) : (
        <ShapeForm
          key={name}
          shape={shape}
          button={`Send ${name}`}
          send={async (payload) => {
            const error = await call('workflow_signal', { workflow_id: id, signal: name, payload }, `${name} was sent`);
            if (error === null) onClose();
            return error;
          }}
          before={
            <div className="picks" role="group" aria-label="Signal">
              {names.map((one) => (
                <button key={one} type="button" className="chip" aria-pressed={one === name} onClick={() => setName(one)}>
                  {awaited.includes(one) && <Icon name="ear" size={13} />} {one}
                </button>
              ))}
            </div>
          }
        />
      )}
    </Dialog>
  );
}
