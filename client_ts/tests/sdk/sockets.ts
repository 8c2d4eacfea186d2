// Sockets for the SDK that can be looked at: which protocol was agreed on, and every frame that came.
import { WebSocket } from 'undici';
import type { DbConnectionBuilder } from './generated';

type Open = Parameters<DbConnectionBuilder['withWSFn']>[0];
type Adapter = Awaited<ReturnType<Open>>;

export interface Socket {
  open: Open;
  protocol: () => string;
  frames: Uint8Array[];
  /** Sends bytes as they are, beside what the SDK sends. */
  send: (data: Uint8Array) => void;
}

/** A socket that offers these protocols, or those of the SDK. */
export function socketOf(offered?: string[]): Socket {
  let made: WebSocket | undefined;
  const received: Uint8Array[] = [];
  return {
    open: async ({ url, nameOrAddress, wsProtocol, compression, confirmedReads }) => {
      const address = new URL(`v1/database/${nameOrAddress}/subscribe`, url);
      address.protocol = address.protocol.replace('http', 'ws');
      address.searchParams.set('compression', compression === 'gzip' ? 'Gzip' : 'None');
      if (confirmedReads !== undefined) {
        address.searchParams.set('confirmed', String(confirmedReads));
      }
      made = new WebSocket(address, offered ?? wsProtocol);
      made.binaryType = 'arraybuffer';
      made.addEventListener('message', ({ data }) => received.push(new Uint8Array(data as ArrayBuffer)));
      return made as unknown as Adapter;
    },
    protocol: () => made?.protocol ?? '',
    frames: received,
    send: (data) => made?.send(data),
  };
}

export function frames(socket: Socket): Uint8Array[] {
  return socket.frames;
}
