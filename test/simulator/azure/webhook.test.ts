import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { start } from './clients.ts';

interface Received {
  readonly contentType: string;
  readonly count: string;
  readonly key: string;
  readonly body: unknown;
  readonly atMs: number;
}

const MINUTE = 60_000;
let at: Awaited<ReturnType<typeof start>>;
let endpoint: Awaited<ReturnType<typeof listen>>;
beforeEach(async () => {
  at = await start();
  endpoint = await listen();
});
afterEach(async () => {
  await endpoint.close();
  await at.simulator.close();
});

/** An endpoint that answers as `statuses` say, one after the other, and then with 200. */
async function listen() {
  const received: Received[] = [];
  const statuses: number[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({
        contentType: request.headers['content-type'] ?? '',
        count: String(request.headers['aeg-delivery-count']),
        key: String(request.headers['x-functions-key']),
        body: JSON.parse(Buffer.concat(chunks).toString()) as unknown,
        atMs: at.world.clock.now().getTime(),
      });
      response.writeHead(statuses.shift() ?? 200).end('answer');
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = () =>
    new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${address.port}`, received, statuses, close };
}

const minutesAfterFirst = (received: readonly Received[]) =>
  received.map(({ atMs }) => (atMs - (received[0]?.atMs ?? 0)) / MINUTE);

describe('Event Grid over HTTP', () => {
  it('delivers in both schemas with the headers of an event subscription', async () => {
    const grid = at.simulator.events.push(endpoint.url, { headers: { 'x-functions-key': 'secret' } });
    const cloud = at.simulator.events.push(endpoint.url, { schema: 'CloudEventSchemaV1_0' });
    at.sub.createVm('vm-1');
    await grid.settled();
    await cloud.settled();
    const bodies = endpoint.received.toSorted((a, b) => a.contentType.localeCompare(b.contentType));
    expect(bodies).toMatchObject([
      { contentType: 'application/cloudevents+json; charset=utf-8', body: { specversion: '1.0' } },
      {
        contentType: 'application/json; charset=utf-8',
        count: '0',
        key: 'secret',
        body: [{ eventType: 'Microsoft.Resources.ResourceWriteSuccess' }],
      },
    ]);
    expect([...grid.deadLetters, ...cloud.deadLetters]).toEqual([]);
  });

  it('tries again on its schedule until the endpoint takes it', async () => {
    endpoint.statuses.push(500, 503, 404, 408, 202);
    const webhook = at.simulator.events.push(endpoint.url);
    at.sub.createVm('vm-1');
    await webhook.exhaust();
    // 10 s; 30 s; a minute, but 5 after a 404; 5 minutes.
    expect(minutesAfterFirst(endpoint.received)).toEqual([0, 1 / 6, 4 / 6, 4 / 6 + 5, 4 / 6 + 10]);
    expect(endpoint.received.map(({ count }) => count)).toEqual(['0', '1', '2', '3', '4']);
    expect(webhook.deadLetters).toEqual([]);
  });

  it('gives an event up after a day, after so many attempts, or at once where trying again is no use', async () => {
    const { events } = at.simulator;
    endpoint.statuses.push(...Array.from({ length: 99 }, () => 500));
    const day = events.push(endpoint.url);
    at.sub.createVm('vm-1');
    await day.exhaust();
    expect(day.deadLetters).toMatchObject([{ reason: 'TimeToLiveExceeded', attempts: 11, last: '500' }]);
    expect(minutesAfterFirst(endpoint.received).at(-1)).toBeLessThan(24 * 60);
    const three = events.push(endpoint.url, { maxAttempts: 3 });
    const long = events.push(endpoint.url, { timeToLiveMs: 365 * 24 * 60 * MINUTE });
    at.sub.createVm('vm-2');
    await three.exhaust();
    await long.exhaust();
    expect(three.deadLetters).toMatchObject([{ reason: 'MaxDeliveryAttemptsExceeded', attempts: 3 }]);
    expect(long.deadLetters).toMatchObject([{ reason: 'MaxDeliveryAttemptsExceeded', attempts: 30 }]);
  });

  it.each([400, 401, 403, 413])('does not try again after %i', async (status) => {
    endpoint.statuses.push(status);
    const webhook = at.simulator.events.push(endpoint.url);
    at.sub.createVm('vm-1');
    await webhook.exhaust();
    expect(endpoint.received).toHaveLength(1);
    expect(webhook.deadLetters).toMatchObject([{ reason: 'NotRetried', attempts: 1, last: String(status) }]);
  });

  it('knows an endpoint that is not there', async () => {
    const webhook = at.simulator.events.push(endpoint.url, { maxAttempts: 2 });
    await endpoint.close();
    at.sub.createVm('vm-1');
    await webhook.exhaust();
    expect(webhook.deadLetters).toMatchObject([{ attempts: 2, last: 'TypeError' }]);
  });
});
