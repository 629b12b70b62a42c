import type { QueueClient, QueueServiceClient } from '@azure/storage-queue';
import type { Work, WorkQueue } from '../core/ports.ts';
import { messageOf } from '../core/run.ts';
import { insecure, type StorageAccess, statusOf } from './storage.ts';

/** A message may stay hidden for seven days. */
const MAX_DELAY_S = 604_800;
/** 64 KiB a message, and base64 takes a third more than the text. */
const MAX_BYTES = 48_000;

/** The queues of a deployment, by kind of work; the Functions host moves what fails too often to `<name>-poison`. */
const QUEUES = { reap: 'gleaner-reap', sweep: 'gleaner-work', event: 'gleaner-events' } as const;

/** Azure Queue Storage. Messages are JSON in base64, which is what the Functions host expects. */
export class StorageQueue implements WorkQueue {
  readonly #access: StorageAccess;
  #service: Promise<QueueServiceClient> | undefined;

  constructor(access: StorageAccess) {
    this.#access = access;
  }

  /** A batch that is too big for a message is sent as several. @throws Error when one item alone is */
  async send(work: Work, delayMs: number): Promise<void> {
    const visibilityTimeout = Math.min(MAX_DELAY_S, Math.max(0, Math.ceil(delayMs / 1000)));
    for (const part of split(work)) await this.#put(QUEUES[work.kind], part, visibilityTimeout);
  }

  /** The reason is in the log; the message stays one that can be sent again. */
  async giveUp(work: Work, _reason: string): Promise<void> {
    for (const part of split(work)) await this.#put(`${QUEUES[work.kind]}-poison`, part, 0);
  }

  async #put(name: string, text: string, visibilityTimeout: number): Promise<void> {
    const queue = (await this.#client()).getQueueClient(name);
    const message = Buffer.from(text).toString('base64');
    try {
      await put(queue, message, visibilityTimeout);
    } catch (cause) {
      // The host makes a poison queue at its first message; a queue of the deployment that is missing is a wrong deployment.
      if (statusOf(cause) !== 404 || !name.endsWith('-poison')) {
        throw new Error(`queue ${name}: ${messageOf(cause)}`, { cause });
      }
      await queue.createIfNotExists();
      await put(queue, message, visibilityTimeout);
    }
  }

  #client(): Promise<QueueServiceClient> {
    this.#service ??= import('@azure/storage-queue').then(({ QueueServiceClient: Client }) => {
      const access = this.#access;
      const options = { retryOptions: { maxTries: 6, tryTimeoutInMs: 10_000 } };
      if (!('url' in access)) return Client.fromConnectionString(access.connectionString, options);
      if (!access.url.startsWith('https:') && !insecure(access)) throw new Error('the queues need https');
      return new Client(access.url, access.credential, options);
    });
    return this.#service;
  }
}

/** Never expires: what waits must not vanish. */
async function put(queue: QueueClient, message: string, visibilityTimeout: number): Promise<void> {
  await queue.sendMessage(message, { visibilityTimeout, messageTimeToLive: -1 });
}

function split(work: Work): string[] {
  const text = JSON.stringify(work);
  if (Buffer.byteLength(text) <= MAX_BYTES) return [text];
  if (work.kind !== 'reap' || work.items.length < 2) throw new Error(`a ${work.kind} message is too big for its queue`);
  const half = Math.ceil(work.items.length / 2);
  return [work.items.slice(0, half), work.items.slice(half)].flatMap((items) => split({ ...work, items }));
}
