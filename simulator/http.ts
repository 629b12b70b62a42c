import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './world/faults.ts';

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Serves on loopback only: what is simulated here has no other guard. Port 0 takes a free one. */
export async function serve(
  port: number,
  handle: (request: IncomingMessage, body: string, response: ServerResponse) => Promise<void>,
) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      handle(request, Buffer.concat(chunks).toString('utf8'), response).catch((error: unknown) => {
        response.writeHead(500, { 'content-type': 'text/plain' });
        response.end(error instanceof Error ? (error.stack ?? error.message) : String(error));
      });
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${address.port}`, close };
}

/** Sends an answer, or what a fault makes of it on the wire. */
export async function send(response: ServerResponse, answer: Answer, latencyMs: number, fault?: Fault): Promise<void> {
  if (latencyMs > 0) await sleep(latencyMs);
  const headers = { 'content-type': 'text/xml;charset=UTF-8', ...answer.headers };
  switch (fault?.kind) {
    case 'hang':
      return;
    case 'drop':
      response.destroy();
      return;
    case 'empty':
      response.writeHead(200, headers).end();
      return;
    case 'cut': {
      response.writeHead(answer.status, { ...headers, 'content-length': String(Buffer.byteLength(answer.body)) });
      response.write(answer.body.slice(0, Math.floor(answer.body.length / 2)), () => response.destroy());
      return;
    }
    default:
      response
        .writeHead(answer.status, { ...headers, 'content-length': String(Buffer.byteLength(answer.body)) })
        .end(answer.body);
  }
}
