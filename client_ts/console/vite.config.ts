import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// Built into the Python package, which serves it at /console/ and ships it in its wheel. `npm run dev` serves it with
// hot reload, and passes what is for the game server on to it.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    outDir: '../../gamedb/console',
    emptyOutDir: true,
    target: 'es2022',
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: { '/v1': { target: 'http://127.0.0.1:3000', ws: true }, '/metrics': { target: 'http://127.0.0.1:3000' } },
  },
});
