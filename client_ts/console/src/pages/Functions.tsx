// Reducers and procedures, with forms to call them.

import { useMemo, useState } from 'react';
import { useDatabase } from '../live/hooks';
import { kindText, type FunctionInfo } from '../module/schema';
import { show, type Row } from '../module/values';
import { go, href, type Route } from '../route';
import { Fields, formOfFields, useForm, type FormType } from '../ui/form';
import { Icon } from '../ui/icons';
import { Empty, Mistake } from '../ui/parts';
import { seconds } from '../ui/time';

export function Functions({ route }: { route: Route }) {
  const { schema } = useDatabase();
  const [filter, setFilter] = useState('');
  const isEngine = ({ name }: FunctionInfo): boolean => /^(workflow|debug)_/.test(name);
  const callable = schema.functions
    .filter((one) => one.lifecycle === null)
    .sort((a, b) => Number(isEngine(a)) - Number(isEngine(b)) || a.name.localeCompare(b.name));
  const chosen = callable.find((one) => one.name === route.item) ?? callable[0];
  return (
    <div className="page split">
      <nav className="split-list" aria-label="Reducers and procedures">
        <span className="search">
          <Icon name="search" size={14} />
          <input data-search aria-label="Find" placeholder="Find a reducer" value={filter} onChange={(event) => setFilter(event.target.value)} />
        </span>
        <ul>
          {callable
            .filter((one) => one.name.includes(filter))
            .map((one) => (
              <li key={one.name}>
                <a href={href(route.database, 'calls', one.name)} aria-current={one === chosen ? 'page' : undefined} className={isEngine(one) ? 'is-engine' : ''}>
                  <span>{one.name}</span>
                  {one.isPrivate && <Icon name="lock" size={12} />}
                  <b>{one.kind === 'procedure' ? 'procedure' : ''}</b>
                </a>
              </li>
            ))}
        </ul>
        <select className="split-select" aria-label="Function" value={chosen?.name} onChange={(event) => go(href(route.database, 'calls', event.target.value))}>
          {callable.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
      </nav>
      {chosen ? <Call key={chosen.name} called={chosen} /> : <Empty icon="call" title="The module has no reducers" />}
    </div>
  );
}

type Outcome = { text: string; bad: boolean; took: number };

function Call({ called }: { called: FunctionInfo }) {
  const { schema, link, name: database } = useDatabase();
  const type = useMemo<FormType>(() => ({ kind: 'struct', text: called.name, fields: formOfFields(called.params, schema) }), [called, schema]);
  const form = useForm(type);
  const [busy, setBusy] = useState(false);
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);

  const submit = async (): Promise<void> => {
    const checked = form.check();
    if (checked === null) return;
    setBusy(true);
    const before = performance.now();
    let text: string;
    let bad = false;
    try {
      if (called.kind === 'procedure') {
        const value = await link.callProcedure(called.name, checked.value as Row);
        text = called.returns!.tag === 'unit' ? 'It has returned.' : show(called.returns!, value, schema);
      } else {
        await link.call(called.name, checked.value as Row);
        text = 'It has committed.';
      }
    } catch (error) {
      bad = true;
      text = error instanceof Error ? error.message : String(error);
    }
    setBusy(false);
    setOutcomes((last) => [{ text, bad, took: (performance.now() - before) / 1000 }, ...last].slice(0, 10));
  };

  return (
    <section className="split-main" aria-label={called.name}>
      <header className="bar">
        <h2>{called.name}</h2>
        <span className="badge">{called.kind}</span>
        {called.isPrivate && <span className="badge">private</span>}
        {called.scheduledBy && (
          <span className="muted">
            called by rows of <a href={href(database, 'tables', called.scheduledBy)}>{called.scheduledBy}</a>
          </span>
        )}
      </header>
      <form
        className="form call-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {type.kind === 'struct' && type.fields.length ? <Fields fields={type.fields} {...form.props} /> : <p className="quiet">It takes no arguments.</p>}
        {called.returns && called.returns.tag !== 'unit' && (
          <p className="muted">
            Gives <code>{kindText(called.returns, schema)}</code>
          </p>
        )}
        <div>
          <button className="button button-main" disabled={busy}>
            <Icon name="call" size={13} /> {busy ? 'Calling' : 'Call'}
          </button>
          <span className="quiet"> as you, the operator: it is your identity that it sees as sender.</span>
        </div>
      </form>
      <ol className="outcomes" data-testid="outcomes">
        {outcomes.map((one, at) => (
          <li key={outcomes.length - at}>
            {one.bad ? <Mistake>{one.text}</Mistake> : <div className="outcome">{one.text}</div>}
            <span className="quiet">{seconds(one.took)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
