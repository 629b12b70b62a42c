import { describe, expect, it } from 'vitest';
import { azure } from '../../shared/azure/registry.ts';
import { type Engine, reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { parsePolicy } from '../../shared/core/policy.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { enforce, MINUTE, silent, TestQueue } from '../support/run.ts';
import { diskBody, diskId, HastyClock, MCM_TAGS, nicBody, nicId, SUBSCRIPTION, scripted, vmId } from './scripted.ts';
import { SmallArm } from './small-arm.ts';

const vmBody = (name: string, timeCreated = '2026-11-01T08:00:00Z') => ({
  id: vmId(name),
  name,
  location: 'we',
  tags: MCM_TAGS,
  properties: { vmId: `guid-${name}`, timeCreated, networkProfile: { networkInterfaces: [] }, storageProfile: {} },
});

async function started(arm: SmallArm, policy: object = {}, queue?: TestQueue) {
  const server = await scripted(arm.answer);
  const clock = new HastyClock();
  const engine: Engine = {
    cloud: azure({ clock, endpoint: server.origin }),
    store: new MemoryLedger(clock),
    policy: parsePolicy(policy),
    clock,
    log: silent,
    notifier: { notify: async () => {} },
    ...(queue && { queue }),
  };
  const events = (eventTime: string) =>
    engine.cloud.parseEvent([
      {
        id: 'e-1',
        eventType: 'Microsoft.Resources.ResourceDeleteSuccess',
        eventTime,
        data: { operationName: 'MICROSOFT.COMPUTE/virtualMachines/DELETE', resourceUri: vmId('VM-7').toUpperCase() },
      },
    ]);
  return { engine, clock, server, events, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const leftovers = () => [nicBody('vm-7-nic'), diskBody('vm-7-os-disk')];
const living = () => [vmBody('vm-8'), nicBody('vm-8-nic'), diskBody('vm-8-os-disk')];

describe('from the event to the deletion', () => {
  it('twice and in mixed case: what the VM left goes, a reserved NIC after 200 s, its siblings stay', async () => {
    const arm = new SmallArm(...leftovers(), ...living());
    const queue = new TestQueue();
    await using at = await started(arm, { grace: '0' }, queue);
    await at.clock.sleep(6 * MINUTE);
    const [event] = at.events('2026-12-01T12:00:00Z');
    if (!event) throw new Error('no event');
    const first = await vmEvent(at.engine, event, enforce);
    await vmEvent(at.engine, event, enforce);
    expect(first.report.items.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['vm-7-nic', 'wait'],
      ['vm-7-os-disk', 'wait'],
    ]);
    expect(first.report.calls).toEqual({
      VirtualMachines_Get: 1,
      NetworkInterfaces_ListByResourceGroup: 1,
      Disks_ListByResourceGroup: 1,
    });
    arm.refuse = (id) => (id.endsWith('vm-7-nic') ? { status: 400, code: 'NicReservedForAnotherVm' } : undefined);
    await at.clock.sleep(11 * MINUTE);
    const reports = [];
    for (const { work } of queue.sent.splice(0)) reports.push(await reap(at.engine, work as ReapWork, enforce));
    expect(reports.flatMap(({ items }) => items.map(({ name, outcome }) => [name, outcome]))).toContainEqual([
      'vm-7-os-disk',
      'deleted',
    ]);
    const again = queue.sent.splice(0);
    expect(again.map(({ delayMs }) => delayMs)).toContain(200_000);
    expect(arm.names()).toContain('vm-7-nic');
    arm.refuse = () => undefined;
    await at.clock.sleep(200_000);
    for (const { work } of again) await reap(at.engine, work as ReapWork, enforce);
    expect(arm.names()).toEqual(['vm-8', 'vm-8-nic', 'vm-8-os-disk']);
  });

  it('costs 4 + 2k calls, and the polls that the server asks for', async () => {
    const arm = new SmallArm(...leftovers(), ...living());
    const queue = new TestQueue();
    await using at = await started(arm, { grace: '0' }, queue);
    await at.clock.sleep(6 * MINUTE);
    const calls: Record<string, number>[] = [];
    for (const event of at.events('2026-12-01T12:00:00Z'))
      calls.push((await vmEvent(at.engine, event, enforce)).report.calls);
    await at.clock.sleep(11 * MINUTE);
    for (const { work } of queue.sent) calls.push((await reap(at.engine, work as ReapWork, enforce)).calls);
    expect(arm.names()).toEqual(['vm-8', 'vm-8-nic', 'vm-8-os-disk']);
    const spent = calls.flatMap((one) => Object.entries(one)).filter(([name]) => !name.endsWith('_Poll'));
    expect(spent.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(4 + 2 * 2);
  });

  it('two hours late, after the VM was made again under its name: everything stays', async () => {
    const arm = new SmallArm(...leftovers(), vmBody('vm-7', '2026-12-01T13:00:00Z'));
    const queue = new TestQueue();
    await using at = await started(arm, { grace: '0' }, queue);
    await at.clock.sleep(120 * MINUTE);
    for (const event of at.events('2026-12-01T12:00:00Z')) await vmEvent(at.engine, event, enforce);
    expect(queue.sent).toEqual([]);
    expect(arm.names()).toEqual(['vm-7', 'vm-7-nic', 'vm-7-os-disk']);
  });
});

describe('a sweep', () => {
  const all = { subscriptions: [SUBSCRIPTION] };
  const group = { ...all, resourceGroup: 'shoot--ONE' };

  it.each([
    ['a subscription', all],
    ['a resource group', group],
  ])('of %s deletes at the second look what is due, and counts its calls', async (_, request) => {
    const arm = new SmallArm(...leftovers(), ...living());
    await using at = await started(arm);
    const first = await sweep(at.engine, 'sweep', request, enforce);
    expect(first.report).toMatchObject({ complete: true, counts: { deleted: 0 } });
    await at.clock.sleep(31 * MINUTE);
    const { report } = await sweep(at.engine, 'sweep', request, enforce);
    expect(report.errors).toEqual([]);
    expect(report.counts).toMatchObject({ deleted: 2 });
    expect(arm.names()).toEqual(['vm-8', 'vm-8-nic', 'vm-8-os-disk']);
    expect(report.calls).toMatchObject({
      VirtualMachines_Get: 2,
      NetworkInterfaces_Delete: 1,
      Disks_Delete: 1,
      Disks_Poll: 1,
    });
    if (request === all)
      expect(report.calls).toMatchObject({ ResourceGraph_Resources: 1, Disks_Get: 3, NetworkInterfaces_Get: 3 });
    else expect(report.calls).toMatchObject({ Disks_ListByResourceGroup: 1, Disks_Get: 1, NetworkInterfaces_Get: 1 });
  });

  it('plans without a write', async () => {
    const arm = new SmallArm(...leftovers());
    await using at = await started(arm);
    await sweep(at.engine, 'plan', group, { ...enforce, mode: 'observe' });
    expect(at.server.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('reports a lock, a deny assignment and an operation that failed at its end; siblings go', async () => {
    const names = ['a', 'b', 'c', 'd'].map((name) => `vm-${name}-os-disk`);
    const arm = new SmallArm(...names.map((name) => diskBody(name)));
    const refusals: Record<string, string> = {
      'vm-a-os-disk': 'ScopeLocked',
      'vm-b-os-disk': 'DenyAssignmentAuthorizationFailed',
    };
    arm.refuse = (id) => {
      const code = refusals[id.split('/').at(-1) ?? ''];
      return code === undefined ? undefined : { status: 409, code };
    };
    arm.failAtEnd = (id) =>
      id.includes('vm-c') ? { code: 'OperationNotAllowed', message: 'Disk is attached to VM x.' } : undefined;
    await using at = await started(arm, { grace: '0', settle: '0' });
    const { report, later } = await sweep(at.engine, 'sweep', group, enforce);
    const outcomes = Object.fromEntries(report.items.map(({ name, outcome }) => [name, outcome]));
    expect(outcomes).toEqual({
      'vm-a-os-disk': 'failed',
      'vm-b-os-disk': 'failed',
      'vm-c-os-disk': 'deferred',
      'vm-d-os-disk': 'deleted',
    });
    expect(report.errors.map(({ code }) => code).sort()).toEqual([
      'DenyAssignmentAuthorizationFailed',
      'OperationNotAllowed',
      'ScopeLocked',
    ]);
    expect(later.map(({ item }) => item.id)).toEqual([diskId('vm-c-os-disk')]);
    expect(arm.names()).toEqual(['vm-a-os-disk', 'vm-b-os-disk', 'vm-c-os-disk']);
  });

  it('keeps what is attached again although Resource Graph still shows it as free', async () => {
    const arm = new SmallArm(...living(), nicBody('vm-7-nic', { virtualMachine: { id: vmId('vm-8') } }));
    arm.graph = [nicId('vm-7-nic'), diskId('long-gone')];
    await using at = await started(arm, { grace: '0', settle: '0', minAge: '0' });
    const { report } = await sweep(at.engine, 'sweep', all, enforce);
    expect(report).toMatchObject({ complete: true, items: [] });
    expect(at.server.seen.filter(({ method }) => method === 'DELETE')).toEqual([]);
  });
});
