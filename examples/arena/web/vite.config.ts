import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// `npm run dev` serves the page with hot reload, and passes what is for the game server on to it.
export default defineConfig({
  plugins: [react()],
  build: { outDir: 'dist', target: 'es2022', chunkSizeWarningLimit: 700 },
  server: { proxy: { '/v1': { target: 'http://127.0.0.1:3000', ws: true } } },
});
