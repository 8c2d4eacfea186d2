// Node 20 has no WebSocket of its own; the SDK takes the global one where there is one.
import { WebSocket } from 'undici';

globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;
