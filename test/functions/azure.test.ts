import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { reportSchema } from '../../shared/core/report.ts';
import { diskBody, diskId, nicBody, nicId, SUBSCRIPTION, vmId } from '../azure/scripted.ts';
import { stage as open, Worker } from './azure-stage.ts';

const SECRET = 'someone@example.org';
const details = (operationName: string, name: string) => ({
  operationName,
  resourceUri: vmId(name).toUpperCase(),
  claims: { name: SECRET },
  authorization: { evidence: SECRET },
  httpRequest: { clientIpAddress: SECRET },
});
const HOUR_AGO = () => new Date(Date.now() - 3_600_000).toISOString();
const grid = (name: string, time = HOUR_AGO()) => ({
  id: `grid-${name}`,
  eventType: 'Microsoft.Resources.ResourceDeleteSuccess',
  eventTime: time,
  subject: vmId(name),
  data: details('MICROSOFT.COMPUTE/virtualMachines/DELETE', name),
});
const cloudEvent = (name: string) => ({
  specversion: '1.0',
  id: `cloud-${name}`,
  type: 'Microsoft.Resources.ResourceDeleteSuccess',
  source: `/subscriptions/${SUBSCRIPTION}`,
  time: HOUR_AGO(),
  data: details('Microsoft.Compute/virtualMachines/delete', name),
});

let stage: Awaited<ReturnType<typeof open>>;
beforeAll(async () => {
  stage = await open({ grace: '0', minAge: '0', settle: '0' });
}, 120_000);
afterAll(() => stage?.[Symbol.asyncDispose]());
beforeEach(async () => {
  stage.server.seen.length = 0;
  for (const name of stage.arm.names()) for (const idOf of [diskId, nicId, vmId]) stage.arm.remove(idOf(name));
  await stage.clear();
});

const send = (event: unknown) => stage.worker.call('vmEvent', { json: JSON.stringify(event) });

describe('the function app', () => {
  it('registers six functions while it loads, with their triggers', async () => {
    const { functions, loadMs } = await stage.worker.loaded;
    const shown = Object.fromEntries(
      functions.map(({ name, bindings }) => {
        const [binding] = Object.values(bindings).filter(({ direction }) => direction === 'in');
        const { type, queueName, connection, schedule, authLevel, methods } = binding ?? {};
        return [name, JSON.parse(JSON.stringify({ type, queueName, connection, schedule, authLevel, methods }))];
      }),
    );
    const queue = (queueName: string) => ({ type: 'queueTrigger', queueName, connection: 'GLEANER_STORAGE' });
    expect(shown).toEqual({
      vmEvent: { type: 'eventGridTrigger' },
      vmEventWork: queue('gleaner-events'),
      reap: queue('gleaner-reap'),
      schedule: { type: 'timerTrigger', schedule: '%GLEANER_SCHEDULE%' },
      sweepWork: queue('gleaner-work'),
      invoke: { type: 'httpTrigger', authLevel: 'function', methods: ['POST'] },
    });
    console.log(`bundle loaded and registered in ${loadMs.toFixed(0)} ms`);
    expect(loadMs).toBeLessThan(2000);
  });

  it('registers without any setting, and names the one that is missing when called', async () => {
    const bare = new Worker(stage.folder, {});
    try {
      expect((await bare.loaded).functions).toHaveLength(6);
      expect((await bare.call('schedule', { json: '{}' })).error).toMatch(
        /^InputError: environment\.GLEANER_(SUBSCRIPTIONS|TABLE)/,
      );
    } finally {
      await bare.stop();
    }
  });
});

describe('VM events', () => {
  it.each([
    ['its own schema', (name: string) => grid(name)],
    ['a batch in its own schema', (name: string) => [grid(name)]],
    ['CloudEvents', (name: string) => cloudEvent(name)],
  ])("in %s, twice and in mixed case, lead to the leftovers' deletion", async (_, event) => {
    stage.arm.put(diskBody('vm-7-os-disk'));
    stage.arm.put(nicBody('vm-7-nic'));
    stage.arm.put(diskBody('unrelated', {}, {}));
    for (const answer of [await send(event('vm-7')), await send(event('vm-7'))]) expect(answer.error).toBeUndefined();
    expect(await stage.peek('gleaner-events')).toHaveLength(2);
    for (const answer of await stage.pump('gleaner-events', 'vmEventWork')) expect(answer.error).toBeUndefined();
    expect(stage.deletes()).toEqual([]);
    await stage.reapNow();
    expect(stage.arm.names()).toEqual(['unrelated']);
    expect(stage.deletes()).toHaveLength(2);
    expect(new Set(stage.deletes())).toEqual(new Set(['vm-7-nic', 'vm-7-os-disk']));
  });

  it('that are bad are refused by an Error that names the field, and enqueue nothing', async () => {
    const { data, ...rest } = grid('vm-7');
    const bad = [rest, { ...rest, data: { ...data, resourceUri: 'nonsense' } }, 'text', [1], {}];
    for (const event of bad) expect((await send(event)).error).toMatch(/^InputError: event/);
    expect(
      (await send({ ...grid('x'), eventType: 'Microsoft.Resources.ResourceActionSuccess' })).error,
    ).toBeUndefined();
    expect(await stage.peek('gleaner-events')).toEqual([]);
  });

  it('leave no personal data in a log line or a message', async () => {
    await send(grid('vm-9'));
    await send({ ...grid('vm-9'), eventTime: SECRET });
    expect((await stage.peek('gleaner-events')).join()).not.toContain(SECRET);
    expect(stage.worker.lines.length).toBeGreaterThan(0);
    expect(stage.worker.lines.join('\n')).not.toContain(SECRET);
  });
});

describe('queues and timer', () => {
  it('hands each subscription to a call of its own, whose finds are deleted by another', async () => {
    stage.arm.put(diskBody('lost-os-disk'));
    expect((await stage.worker.call('schedule', { json: '{"IsPastDue":false}' })).error).toBeUndefined();
    const [work] = (await stage.peek('gleaner-work')).map((text) => JSON.parse(text) as object);
    expect(work).toMatchObject({ kind: 'sweep', request: { scopeIds: [`azure:${SUBSCRIPTION}`] }, attempt: 0 });
    const [answer] = await stage.pump('gleaner-work', 'sweepWork');
    expect(answer?.error).toBeUndefined();
    const lines = answer?.logs.map(({ message }) => JSON.parse(message) as { msg: string }) ?? [];
    expect(lines.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['gleaner.sweep-finished', 'gleaner.metrics']));
    expect(stage.deletes()).toEqual([]);
    await stage.reapNow();
    expect(stage.arm.names()).toEqual([]);
  });

  it.each([
    ['reap', 'no json'],
    ['reap', '{"kind":"reap","items":[]}'],
    ['sweepWork', '{"kind":"event"}'],
    ['vmEventWork', '{"kind":"sweep","runId":"r","request":{},"attempt":0}'],
  ])('%s refuses %s, so that the host moves it to the poison queue', async (name, string) => {
    expect((await stage.worker.call(name, { string })).error).toMatch(/Error: /);
    expect(stage.server.seen).toEqual([]);
  });
});

describe('by hand', () => {
  it('deletes in a resource group within the call, and says what became of each', async () => {
    stage.arm.put(diskBody('hand-os-disk'));
    const answer = await stage.post({ action: 'sweep', scope: { resourceGroup: 'SHOOT--one' } });
    expect(answer.status).toBe(200);
    const report = reportSchema.parse(answer.body);
    expect(report).toMatchObject({ verb: 'sweep', mode: 'enforce', complete: true });
    expect(report.items).toMatchObject([{ name: 'hand-os-disk', verdict: 'reap', outcome: 'deleted' }]);
    expect(stage.arm.names()).toEqual([]);
    const { body } = await stage.post({ action: 'history' });
    expect((body as { items: { name: string }[] }).items.map(({ name }) => name)).toContain('hand-os-disk');
  });

  it('plans without a write, and tells the history', async () => {
    stage.arm.put(diskBody('plan-os-disk'));
    const planned = await stage.post({ action: 'plan', scope: {} });
    expect(planned).toMatchObject({ status: 200, body: { verb: 'plan', items: [{ outcome: 'would-delete' }] } });
    expect(await stage.post({ action: 'history' })).toMatchObject({ status: 200, body: { items: expect.any(Array) } });
    expect(stage.deletes()).toEqual([]);
  });

  it.each([
    ['', 'body'],
    ['sweep', 'body'],
    [{}, 'body.action'],
    [{ action: 'destroy' }, 'body.action'],
    [{ action: 'sweep', scope: { resourcegroup: 'x' } }, 'body.scope.resourcegroup'],
    [{ action: 'sweep', scope: { region: 'westeurope' } }, 'regions'],
    [{ action: 'sweep', scope: { subscription: 'other' } }, 'subscriptions'],
    [{ action: 'sweep', scope: { resourceGroup: 'a/b' } }, 'resourceGroup'],
    [{ action: 'explain', id: 'nonsense' }, 'id'],
  ])('refuses %j with 400, naming %s, and touches nothing', async (body, field) => {
    stage.arm.put(diskBody('there-os-disk'));
    const answer = await stage.post(body);
    expect(answer).toMatchObject({ status: 400, body: { error: { field, message: expect.any(String) } } });
    expect(stage.arm.names()).toEqual(['there-os-disk']);
    expect(stage.deletes()).toEqual([]);
  });
});

describe('a deployment for some resource groups, in observe', () => {
  let worker: Worker;
  beforeAll(() => {
    const settings = { GLEANER_RESOURCE_GROUPS: 'Shoot--One, other', GLEANER_MODE: 'observe' };
    worker = new Worker(stage.folder, { ...stage.settings, ...settings });
  });
  afterAll(() => worker.stop());
  const works = async (name: string) => (await stage.peek(name)).map((text) => JSON.parse(text) as object);

  it('sweeps each of them by a call of its own, strongly consistent, and deletes nothing', async () => {
    stage.arm.put(diskBody('lost-os-disk'));
    expect((await worker.call('schedule', { json: '{"IsPastDue":false}' })).error).toBeUndefined();
    expect(await works('gleaner-work')).toMatchObject([
      { request: { scopeIds: [`azure:${SUBSCRIPTION}`], resourceGroup: 'shoot--one' } },
      { request: { scopeIds: [`azure:${SUBSCRIPTION}`], resourceGroup: 'other' } },
    ]);
    for (const work of await works('gleaner-work'))
      expect((await worker.call('sweepWork', { string: JSON.stringify(work) })).error).toBeUndefined();
    expect(stage.server.seen.map(({ path }) => path.toLowerCase()).join()).not.toContain('resourcegraph');
    expect(await works('gleaner-reap')).toEqual([]);
    expect(stage.arm.names()).toEqual(['lost-os-disk']);
  });

  it('leaves the events of other groups alone', async () => {
    const elsewhere = (text: string) => text.replaceAll(/shoot--one/gi, 'shoot--two');
    expect((await worker.call('vmEvent', { json: elsewhere(JSON.stringify(grid('vm-7'))) })).error).toBeUndefined();
    expect(await works('gleaner-events')).toEqual([]);
    expect((await worker.call('vmEvent', { json: JSON.stringify(grid('vm-7')) })).error).toBeUndefined();
    expect(await works('gleaner-events')).toHaveLength(1);
  });

  it.each([
    [{ action: 'plan', scope: {} }, 'body.scope.resourceGroup'],
    [{ action: 'sweep', scope: { resourceGroup: 'shoot--two' } }, 'body.scope.resourceGroup'],
    [{ action: 'sweep', scope: { vm: vmId('vm-7') } }, 'body.scope.resourceGroup'],
    [{ action: 'sweep', scope: { resourceGroup: 'shoot--one' }, mode: 'enforce' }, 'body.mode'],
  ])('refuses %j by hand, naming %s', async (body, field) => {
    stage.arm.put(diskBody('there-os-disk'));
    expect(await stage.post(body, worker)).toMatchObject({ status: 400, body: { error: { field } } });
    expect(stage.server.seen).toEqual([]);
  });

  it('takes one of them by hand, whatever its case, and says what would go', async () => {
    stage.arm.put(diskBody('there-os-disk'));
    const answer = await stage.post({ action: 'sweep', scope: { resourceGroup: 'SHOOT--ONE' } }, worker);
    expect(answer).toMatchObject({ status: 200, body: { mode: 'observe', items: [{ outcome: 'would-delete' }] } });
    expect(stage.deletes()).toEqual([]);
  });
});
