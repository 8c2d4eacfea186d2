// The WebSocket that the SDK finds: undici's (Node 20 has none of its own), open to the eyes of a test.
import { WebSocket } from 'undici';
import { watching } from './sockets';

class Observed extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    const watch = watching.splice(0, 1)[0];
    super(url, watch?.offered ?? protocols);
    if (watch !== undefined) {
      watch.socket = this;
      this.addEventListener('message', ({ data }) => {
        watch.frames.push(new Uint8Array(data as ArrayBuffer));
      });
    }
  }
}

globalThis.WebSocket = Observed as unknown as typeof globalThis.WebSocket;
