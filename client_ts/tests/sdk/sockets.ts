// Sockets that a test looks into: which protocol was agreed on, every frame that came, and bytes sent by hand.
import type { WebSocket } from 'undici';

export class SocketWatch {
  socket: WebSocket | undefined;
  /** What came, the compression byte in front. */
  readonly frames: Uint8Array[] = [];

  /** `offered`: protocols to offer instead of those of the SDK. */
  constructor(readonly offered?: string[]) {}

  get protocol(): string {
    return this.socket?.protocol ?? '';
  }

  /** Sends bytes beside what the SDK sends. */
  send(data: Uint8Array | string): void {
    this.socket?.send(data);
  }
}

export const watching: SocketWatch[] = [];

/** Looks into the next socket that is opened. */
export function watchNextSocket(offered?: string[]): SocketWatch {
  const watch = new SocketWatch(offered);
  watching.push(watch);
  return watch;
}
