import { useState } from 'react';

/** All that somebody without a token sees. */
export function Login({ why, enter }: { why: string | null; enter: (token: string) => Promise<void> }) {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  return (
    <div className="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setBusy(true);
          void enter(token.trim()).finally(() => setBusy(false));
        }}
      >
        <svg width="34" height="34" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 5.5 8.5 10 4 14.5M10.5 15H16" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" />
        </svg>
        <h1>Console</h1>
        <p>
          For the owner of this server and its operators. Open the link that <code>gamedb start</code> printed, or paste the
          token from <code>owner.token</code> in the data directory.
        </p>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoFocus
          autoComplete="off"
          spellCheck={false}
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={why !== null}
        />
        {why !== null && (
          <p className="field-error" role="alert">
            {why}
          </p>
        )}
        <button className="button button-main" disabled={token.trim() === '' || busy}>
          {busy ? 'Signing in' : 'Sign in'}
        </button>
      </form>
    </div>
  );
}
