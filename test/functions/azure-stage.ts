import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TableClient } from '@azure/data-tables';
import { QueueServiceClient } from '@azure/storage-queue';
import { build } from '../../infra/build.ts';
import { SUBSCRIPTION, scripted } from '../azure/scripted.ts';
import { SmallArm } from '../azure/small-arm.ts';
import { startAzurite } from '../support/azurite.ts';
import { stop } from '../support/child.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface FunctionMetadata {
  readonly name: string;
  readonly bindings: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface Answer {
  readonly logs: readonly { readonly level: string; readonly category: string; readonly message: string }[];
  readonly error?: string;
  readonly response?: { readonly returnValue?: { readonly http?: HttpAnswer } };
}

interface HttpAnswer {
  readonly statusCode: string;
  readonly body?: { readonly string?: string; readonly bytes?: Uint8Array };
}

/** The bundle in a process of its own, as Azure's worker runs it. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #open = new Map<number, (answer: Answer) => void>();
  readonly loaded: Promise<{ loadMs: number; functions: FunctionMetadata[] }>;
  /** Every line that was logged. */
  readonly lines: string[] = [];
  #seq = 0;

  constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#child = fork(join(import.meta.dirname, 'azure-worker.cjs'), [folder], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
      serialization: 'advanced',
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (data) => this.lines.push(String(data)));
    }
    this.loaded = new Promise((done, fail) => {
      this.#child.once('message', (message) => done(message as { loadMs: number; functions: FunctionMetadata[] }));
      this.#child.once('exit', (code) => fail(new Error(`the worker ended with ${code}: ${this.lines.join('')}`)));
    });
    this.#child.on('message', (message: Answer & { seq?: number }) => {
      if (message.seq === undefined) return;
      this.lines.push(...message.logs.map((log) => log.message));
      this.#open.get(message.seq)?.(message);
    });
  }

  async call(name: string, data: object, triggerMetadata: object = {}): Promise<Answer> {
    await this.loaded;
    this.#seq += 1;
    const seq = this.#seq;
    return new Promise((done) => {
      this.#open.set(seq, done);
      this.#child.send({ seq, name, data, triggerMetadata });
    });
  }

  stop(): Promise<void> {
    return stop(this.#child);
  }
}

/** The bundle that is deployed, on Azurite and a small ARM. */
export async function stage(policy: object) {
  const out = mkdtempSync(join(ROOT, 'dist-test-azure-'));
  build(['azure'], { out });
  const azurite = await startAzurite();
  const { connectionString } = azurite;
  await TableClient.fromConnectionString(connectionString, 'gleaner', { allowInsecureConnection: true }).createTable();
  const queues = QueueServiceClient.fromConnectionString(connectionString);
  for (const name of ['reap', 'work', 'events']) await queues.createQueue(`gleaner-${name}`);
  const arm = new SmallArm();
  // The server's ten seconds between polls would be waited for.
  const server = await scripted((request, origin) => {
    const answer = arm.answer(request, origin);
    return answer.headers ? { ...answer, headers: { ...answer.headers, 'retry-after': '0' } } : answer;
  });
  const settings = {
    GLEANER_MODE: 'enforce',
    GLEANER_POLICY: JSON.stringify(policy),
    GLEANER_SUBSCRIPTIONS: SUBSCRIPTION,
    GLEANER_STORAGE: connectionString,
    GLEANER_TABLE: 'gleaner',
    GLEANER_LOG_LEVEL: 'debug',
    AZURE_RESOURCE_MANAGER_ENDPOINT: server.origin,
  };
  const folder = join(out, 'azure');
  const worker = new Worker(folder, settings);
  return {
    arm,
    server,
    worker,
    settings,
    folder,
    deletes: () => server.seen.filter(({ method }) => method === 'DELETE').map(({ path }) => path.split('/').at(-1)),
    peek: async (name: string) => {
      const { peekedMessageItems } = await queues.getQueueClient(name).peekMessages({ numberOfMessages: 32 });
      return peekedMessageItems.map(({ messageText }) => Buffer.from(messageText, 'base64').toString());
    },
    /** Hands what is visible in a queue to its function; what it refuses stays. */
    pump: async (name: string, to: string): Promise<Answer[]> => {
      const queue = queues.getQueueClient(name);
      const answers: Answer[] = [];
      const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 });
      for (const { messageText, messageId, popReceipt } of receivedMessageItems) {
        const answer = await worker.call(to, { string: Buffer.from(messageText, 'base64').toString() });
        if (answer.error === undefined) await queue.deleteMessage(messageId, popReceipt);
        answers.push(answer);
      }
      return answers;
    },
    /** Hands over every deletion that waits in the queue as if its time had come. */
    reapNow: async () => {
      const queue = queues.getQueueClient('gleaner-reap');
      const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
      for (const { messageText } of receivedMessageItems) {
        const work = JSON.parse(Buffer.from(messageText, 'base64').toString()) as object;
        const string = JSON.stringify({ ...work, notBefore: new Date(0).toISOString() });
        const { error } = await worker.call('reap', { string });
        if (error) throw new Error(error);
      }
    },
    post: async (body: unknown, to: Worker = worker) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const http = { method: 'POST', url: 'http://localhost/api/invoke', headers: {}, body: { string: text } };
      const answer = await to.call('invoke', { http });
      const given = answer.response?.returnValue?.http;
      const { string, bytes } = given?.body ?? {};
      const json = string ?? Buffer.from(bytes ?? []).toString();
      return { status: Number(given?.statusCode), body: JSON.parse(json || 'null') as unknown, error: answer.error };
    },
    clear: () =>
      Promise.all(['reap', 'work', 'events'].map((one) => queues.getQueueClient(`gleaner-${one}`).clearMessages())),
    async [Symbol.asyncDispose]() {
      await worker.stop();
      await server[Symbol.asyncDispose]();
      await azurite.stop();
      rmSync(out, { recursive: true });
    },
  };
}
