import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StorageQueue } from '../../shared/azure/queue-storage.ts';
import { afterPrefix, decodeKey, encodeKey } from '../../shared/azure/table-keys.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { parseWork } from '../../shared/core/work.ts';
import { type Azurite, startAzurite } from '../support/azurite.ts';

describe('keys of a table', () => {
  const units = Array.from({ length: 0x120 }, (_, code) => String.fromCharCode(code));

  it('come back as they were, in their order, without what a table refuses', () => {
    const keys = [...units, ...units.flatMap((one) => ['.', '/', '0', '!', '~', ']', '日'].map((next) => one + next))];
    for (const key of keys) expect(decodeKey(encodeKey(key))).toBe(key);
    for (const key of keys) expect(encodeKey(key)).not.toMatch(/[/\\#?%+'\p{Cc}]/u);
    const sorted = keys.toSorted((a, b) => (a < b ? -1 : 1));
    expect(keys.toSorted((a, b) => (encodeKey(a) < encodeKey(b) ? -1 : 1))).toEqual(sorted);
  });

  it('start as their prefixes do, and end before the next', () => {
    for (const prefix of units) {
      const from = encodeKey(prefix);
      const inside = encodeKey(`${prefix}\uffff`);
      expect(inside >= from && inside < afterPrefix(from)).toBe(true);
    }
  });
});

describe('queues of Azure Storage', () => {
  let azurite: Azurite;
  let queue: StorageQueue;
  let service: QueueServiceClient;
  beforeAll(async () => {
    azurite = await startAzurite();
    service = QueueServiceClient.fromConnectionString(azurite.connectionString);
    for (const name of ['reap', 'work']) await service.createQueue(`gleaner-${name}`);
    queue = new StorageQueue({ connectionString: azurite.connectionString });
  }, 60_000);
  afterAll(() => azurite.stop());
  const received = async (name: string) => {
    const { receivedMessageItems } = await service.getQueueClient(name).receiveMessages({ numberOfMessages: 32 });
    return receivedMessageItems.map(({ messageText }) => messageText);
  };
  const work = (count: number): ReapWork => ({
    kind: 'reap',
    runId: 'r',
    scopeId: 'azure:s',
    notBefore: '2026-12-01T12:00:00.000Z',
    attempt: 0,
    items: Array.from({ length: count }, (_, index) => {
      const id = `/subscriptions/s/${'g'.repeat(300)}/disks/${index}`;
      return { key: `azure:${id}`, id, type: 'managed-disk' };
    }),
  });

  it('split a batch that is too big, and lose none of it', async () => {
    await queue.send(work(200), 0);
    const texts = await received('gleaner-reap');
    expect(texts.length).toBeGreaterThan(1);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(65_536);
    const parts = texts.map((text) => parseWork(JSON.parse(Buffer.from(text, 'base64').toString())));
    const ids = parts.flatMap((part) => (part.kind === 'reap' ? part.items.map(({ id }) => id) : []));
    expect(new Set(ids)).toEqual(new Set(work(200).items.map(({ id }) => id)));
  });

  it('hide what is delayed, for a week too, and keep what is given up apart', async () => {
    await queue.send(work(1), 60_000);
    await queue.send(work(1), 30 * 24 * 3_600_000);
    expect(await received('gleaner-reap')).toEqual([]);
    expect((await service.getQueueClient('gleaner-reap').getProperties()).approximateMessagesCount).toBeGreaterThan(1);
    await queue.giveUp(work(1), 'in-use');
    expect(await received('gleaner-reap-poison')).toHaveLength(1);
  });

  it('say so when a queue of the deployment is missing', async () => {
    const event = { eventId: 'e', cloud: 'azure', change: 'deleted', scopeId: 's', vmId: 'v', place: 'p' } as const;
    const sent = queue.send({ kind: 'event', event: { ...event, time: '2026-12-01T12:00:00.000Z' } }, 0);
    await expect(sent).rejects.toThrow(/^queue gleaner-events: /);
  });
});
