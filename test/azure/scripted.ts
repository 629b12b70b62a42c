import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../shared/core/ports.ts';

export interface Scripted {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** JSON, or a string as it is; absent = no body. */
  readonly body?: unknown;
  /** Never answers. */
  readonly hang?: boolean;
  /** Closes the connection in the middle of the body. */
  readonly cut?: boolean;
}

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A server that answers what a test says, for answers that no well-behaved simulator gives. */
export async function scripted(answer: (request: Seen, origin: string) => Scripted) {
  const seen: Seen[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const url = new URL(request.url ?? '/', 'http://localhost');
    const one = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body,
    };
    seen.push(one);
    const say = answer(one, origin);
    if (say.hang) return;
    const text = say.body === undefined ? '' : typeof say.body === 'string' ? say.body : JSON.stringify(say.body);
    const length: Record<string, number> = say.cut ? { 'content-length': text.length + 100 } : {};
    const given = Object.entries(say.headers ?? {}).filter(
      (header): header is [string, string] => header[1] !== undefined,
    );
    response.writeHead(say.status ?? 200, {
      'content-type': 'application/json',
      ...length,
      ...Object.fromEntries(given),
    });
    if (say.cut) response.write(text, () => response.destroy());
    else response.end(text);
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A clock that passes the time at once instead of waiting, and remembers what it was asked to wait. */
export class HastyClock implements Clock {
  readonly slept: number[] = [];
  #nowMs: number;

  constructor(start = new Date('2026-12-01T12:00:00Z')) {
    this.#nowMs = start.getTime();
  }

  now(): Date {
    return new Date(this.#nowMs);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    this.slept.push(ms);
    this.#nowMs += ms;
    return Promise.resolve();
  }
}

export const SUBSCRIPTION = '11111111-2222-3333-4444-555555555555';
export const GROUP = `/subscriptions/${SUBSCRIPTION}/resourceGroups/Shoot--One`;
export const diskId = (name: string) => `${GROUP}/providers/Microsoft.Compute/disks/${name}`;
export const nicId = (name: string) => `${GROUP}/providers/Microsoft.Network/networkInterfaces/${name}`;
export const vmId = (name: string) => `${GROUP}/providers/Microsoft.Compute/virtualMachines/${name}`;
export const MCM_TAGS = { 'kubernetes.io-cluster-shoot--one': '1', 'kubernetes.io-role-node': '1' };

export function diskBody(name: string, properties: object = {}, tags: object = MCM_TAGS) {
  return {
    id: diskId(name),
    name,
    type: 'Microsoft.Compute/disks',
    location: 'westeurope',
    sku: { name: 'Premium_LRS' },
    tags,
    properties: {
      timeCreated: '2026-11-01T08:00:00Z',
      LastOwnershipUpdateTime: '2026-12-01T09:00:00Z',
      diskSizeGB: 64,
      diskState: 'Unattached',
      provisioningState: 'Succeeded',
      creationData: { createOption: 'Empty' },
      ...properties,
    },
  };
}

export function nicBody(name: string, properties: object = {}, tags: object = MCM_TAGS) {
  return {
    id: nicId(name),
    name,
    type: 'Microsoft.Network/networkInterfaces',
    location: 'westeurope',
    tags,
    properties: { provisioningState: 'Succeeded', ipConfigurations: [], ...properties },
  };
}

export const armError = (code: string, message = code) => ({ error: { code, message } });
