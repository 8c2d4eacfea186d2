import { useState } from 'react';
import { useDatabase } from '../../live/hooks';
import { go, href } from '../../route';
import { Dialog, Mistake } from '../../ui/parts';
import { parseInteger } from '../../module/values';
import { sqlText } from '../workflows/filter';
import { ShapeForm, useCall } from './actions';

export function StartDialog({ type, onClose }: { type: string | null; onClose: () => void }) {
  const { name: database, api, description } = useDatabase();
  const { workflows = {}, workflows_testing: testing = false } = description;
  const types = Object.keys(workflows);
  const [chosen, setChosen] = useState(type !== null && type in workflows ? type : (types[0] ?? ''));
  const [entity, setEntity] = useState('');
  const [correlation, setCorrelation] = useState('');
  const [manual, setManual] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const call = useCall();
  const info = workflows[chosen];
  if (!info) {
    return (
      <Dialog title="Start a workflow" onClose={onClose}>
        <div className="dialog-body">
          <Mistake>No workflow is installed.</Mistake>
        </div>
      </Dialog>
    );
  }

  const send = async (init: string): Promise<string | null> => {
    let entityId: unknown;
    try {
      entityId = entity === '' ? undefined : parseInteger('u64', entity);
    } catch (error) {
      setWrong((error as Error).message);
      return null;
    }
    const params = {
      workflow_type: chosen,
      entity_id: entityId,
      correlation_id: correlation === '' ? undefined : correlation,
      init,
    };
    const error = await call(manual ? 'workflow_start_test' : 'workflow_start', params, `${chosen} was started`);
    if (error !== null) return error;
    onClose();
    const where = correlation === '' ? '' : ` AND correlation_id = ${sqlText(correlation)}`;
    const { rows } = await api.sql(database, `SELECT max(id) FROM workflow WHERE workflow_type = ${sqlText(chosen)}${where}`);
    const id = rows[0]?.[0];
    if (id !== undefined && id !== null) go(href(database, 'workflows', String(id)));
    return null;
  };

  return (
    <Dialog title="Start a workflow" onClose={onClose} wide>
      <ShapeForm
        key={chosen}
        shape={info.init}
        button={manual ? 'Start by hand' : 'Start'}
        send={send}
        before={
          <>
            <div className="field">
              <label className="field-label" htmlFor="start-type">
                <span>Workflow</span>
              </label>
              <div className="field-input">
                <select id="start-type" value={chosen} onChange={(event) => setChosen(event.target.value)}>
                  {types.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
                {info.doc && <p className="hint">{info.doc.split('\n')[0]}</p>}
              </div>
            </div>
            <div className={`field ${wrong ? 'is-wrong' : ''}`}>
              <label className="field-label" htmlFor="start-entity">
                <span>Entity</span>
                <span className="field-type">u64 | None</span>
              </label>
              <div className="field-input">
                <input id="start-entity" inputMode="numeric" value={entity} onChange={(event) => (setEntity(event.target.value.trim()), setWrong(null))} />
                {wrong && (
                  <p className="field-error" role="alert">
                    {wrong}
                  </p>
                )}
              </div>
            </div>
            <div className="field">
              <label className="field-label" htmlFor="start-correlation">
                <span>Correlation id</span>
                <span className="field-type">str | None</span>
              </label>
              <div className="field-input">
                <input id="start-correlation" value={correlation} onChange={(event) => setCorrelation(event.target.value)} />
              </div>
            </div>
            <div className="field">
              <span className="field-label">
                <span>Timers</span>
              </span>
              <div className="field-input">
                <label className="check">
                  <input type="checkbox" checked={manual} disabled={!testing} onChange={(event) => setManual(event.target.checked)} />
                  by hand: they fire only when you fire them
                </label>
                {!testing && <p className="hint">The game is installed without testing=True, so timers fire by themselves.</p>}
              </div>
            </div>
            <h3 className="form-part">
              init <span className="field-type">{info.init.type}</span>
            </h3>
          </>
        }
      />
    </Dialog>
  );
}
