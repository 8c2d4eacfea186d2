import { defineConfig } from 'vitest/config';

const source = (file: string) => new URL(`./src/${file}`, import.meta.url).pathname;

export default defineConfig({
  resolve: {
    alias: [
      { find: /^gamedb-client\/react$/, replacement: source('react.ts') },
      { find: /^gamedb-client$/, replacement: source('index.ts') },
    ],
  },
  test: {
    include: ['tests/**/*.test.{ts,tsx}'],
    globalSetup: ['tests/sdk/setup.ts'],
    setupFiles: ['tests/sdk/websocket.ts'],
    // One server for all files, and each file plays with rows of its own names.
    server: { deps: { inline: [/spacetimedb\/src/] } },
    pool: 'threads',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
