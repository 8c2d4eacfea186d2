// The package as others get it: what `npm run build` makes, in plain Node and in a bundle.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';

const PACKAGE = path.resolve(import.meta.dirname, '../..');
const GZIPPED_BYTES_MAX = 15_000;
const installed = mkdtempSync(path.join(tmpdir(), 'gamedb-client-'));

beforeAll(() => {
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json', '--outDir', path.join(installed, 'dist')], { cwd: PACKAGE });
  cpSync(path.join(PACKAGE, 'package.json'), path.join(installed, 'package.json'));
  symlinkSync(path.join(PACKAGE, 'node_modules'), path.join(installed, 'node_modules'));
});

afterAll(() => rmSync(installed, { recursive: true, force: true }));

/** A minified bundle of a program, without what is not of this package; its code and gzipped size. */
async function bundle(program: string): Promise<{ code: string; gzippedBytes: number }> {
  const entry = path.join(installed, 'program.js');
  writeFileSync(entry, program);
  const result = await build({
    root: installed,
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: 'esbuild',
      target: 'es2022',
      lib: { entry, formats: ['es'] },
      rollupOptions: { external: [/^spacetimedb/, /^react/] },
    },
  });
  const [chunk] = Array.isArray(result) ? result : [];
  const code = chunk?.output[0].code ?? '';
  return { code, gzippedBytes: gzipSync(code).length };
}

const ALL = "export * from './dist/index.js';\nexport * from './dist/react.js';";

test('all of it is small', async () => {
  const { code, gzippedBytes } = await bundle(ALL);
  expect(code).toContain('workflow_timer');
  console.log(`gamedb-client with its hooks: ${gzippedBytes} bytes gzipped`);
  expect(gzippedBytes).toBeLessThan(GZIPPED_BYTES_MAX);
});

test('what is not used is left out, and the SDK is not even asked for', async () => {
  const { code } = await bundle(`export { parseJson } from './dist/index.js';`);
  expect(code).not.toMatch(/workflow_timer|spacetimedb|react/);
  expect(code.length).toBeLessThan(1_000);
});

test('it is plain ESM that Node imports by the name of the package, with types beside it', () => {
  const program = `
    import { WorkflowClient, workflowId } from 'gamedb-client';
    import { workflowHooks } from 'gamedb-client/react';
    console.log(typeof WorkflowClient, workflowId({ type: 'a' }, 7n), Object.keys(workflowHooks()).length);`;
  const output = execFileSync('node', ['--input-type=module', '-e', program], { cwd: installed, encoding: 'utf8' });
  expect(output.trim()).toBe('function 7n 4');
  for (const [, types] of readFileSync(path.join(installed, 'package.json'), 'utf8').matchAll(/"types": "(.+)"/g)) {
    expect(readFileSync(path.join(installed, types ?? ''), 'utf8')).toContain('export');
  }
});
