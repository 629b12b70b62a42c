import { describe, expect, it } from 'vitest';
import { sweep } from '../../shared/core/engine.ts';
import type { Report } from '../../shared/core/report.ts';
import { SUBSCRIPTION } from '../../simulator/azure/server.ts';
import { mcmTags } from '../../simulator/azure/shapes.ts';
import { MINUTE, observe } from '../support/run.ts';
import { estate } from './estate.ts';

const DAY = 24 * 60 * MINUTE;
const all = { subscriptions: [SUBSCRIPTION] };
const group = { ...all, resourceGroup: 'SHOOT--one' };
const GRAPH = 'Microsoft.ResourceGraph/resources/read';
const outcomes = (reports: readonly Report[]) =>
  reports.flatMap(({ items }) => items.map(({ name, outcome }) => `${name} ${outcome}`));

describe('a machine whose VM was deleted', () => {
  it('leaves NIC and disks that go, the NIC once its reservation is over; siblings stay, then the group goes', async () => {
    await using at = await estate({ grace: '0', minAge: '0' });
    at.sub.casing = 'mixed';
    at.simulator.events.faults.delaysMs = () => [0, MINUTE];
    const lost = at.sub.createVm('shoot--one-7', { dataDisks: 2 });
    const kept = at.sub.createVm('shoot--one-8');
    const gone = at.sub.createVm('shoot--one-9', { cascade: true });
    at.world.advance(DAY);
    await at.handleEvents();
    at.sub.deleteVm(lost.vm);
    at.world.advance(6 * MINUTE);
    expect(at.deliveries).toHaveLength(2);
    const [first] = await at.handleEvents();
    expect(first?.calls).toEqual({
      VirtualMachines_Get: 1,
      NetworkInterfaces_ListByResourceGroup: 1,
      Disks_ListByResourceGroup: 1,
    });
    // When its turn comes, the NIC is reserved anew: a controller tried to make the VM again, and failed.
    const dueMs = at.world.now().getTime() + Math.max(...at.queue.sent.map(({ delayMs }) => delayMs));
    at.world.at(new Date(dueMs), () => at.sub.reserve(lost.nic, lost.vm));
    const reports = await at.work();
    expect(at.world.writes().map(({ code }) => code)).toContain('NicReservedForAnotherVm');
    expect(outcomes(reports)).toContain('shoot--one-7-nic deferred');
    expect(
      outcomes(reports)
        .filter((one) => one.endsWith(' deleted'))
        .sort(),
    ).toEqual([
      'shoot--one-7-0-data-disk deleted',
      'shoot--one-7-1-data-disk deleted',
      'shoot--one-7-nic deleted',
      'shoot--one-7-os-disk deleted',
    ]);
    const living = ['shoot--one-8', 'shoot--one-8-0-data-disk', 'shoot--one-8-nic', 'shoot--one-8-os-disk'];
    expect(at.sub.names().filter((name) => !name.startsWith('shoot--one-9'))).toEqual(living);
    at.sub.deleteVm(gone.vm);
    expect(at.sub.names()).toEqual(living);
    const url = `${at.simulator.url}${at.sub.groupId('shoot--one')}?api-version=2025-04-01`;
    await fetch(url, { method: 'DELETE' });
    at.world.advance(MINUTE);
    expect([kept.vm, at.sub.names()]).toEqual([kept.vm, []]);
    expect((await fetch(url)).status).toBe(404);
  });
});

describe('an event that comes two hours late', () => {
  it('deletes nothing of the VM that was made again under the name, nor anything that it uses', async () => {
    await using at = await estate({ grace: '0' });
    at.simulator.events.faults.delaysMs = ({ change }) => (change === 'delete' ? [120 * MINUTE] : []);
    const first = at.sub.createVm('shoot--one-7');
    at.world.advance(DAY);
    at.sub.deleteVm(first.vm);
    for (const id of [first.nic, ...first.disks]) at.sub.remove(id);
    at.world.advance(60 * MINUTE);
    const again = at.sub.createVm('shoot--one-7');
    // In flight: neither its NIC nor its data disk shows the VM that it is about to get.
    at.sub.freeNic(again.nic);
    at.sub.freeDisk(again.disks[1] ?? '');
    at.world.advance(61 * MINUTE);
    const reports = await at.handleEvents();
    reports.push(...(await at.work()));
    expect(reports).toHaveLength(1);
    expect(at.deletes()).toEqual([]);
    expect(at.sub.names()).toHaveLength(4);
  });

  it('nor what was made after the event, though its VM is gone again', async () => {
    await using at = await estate({ grace: '0', minAge: '0', settle: '0' });
    const first = at.sub.createVm('shoot--one-7', { cascade: true });
    at.deliveries.length = 0;
    at.world.advance(DAY);
    at.sub.deleteVm(first.vm);
    at.world.advance(60 * MINUTE);
    at.sub.createDisk('shoot--one-7-os-disk');
    at.world.advance(60 * MINUTE);
    const [report] = await at.handleEvents();
    expect(report?.items.map(({ name, reason }) => [name, reason])).toEqual([
      ['shoot--one-7-os-disk', 'created-after-event'],
    ]);
    await at.work();
    expect(at.deletes()).toEqual([]);
  });
});

describe('a sweep', () => {
  const due = { grace: '0', minAge: '0', settle: '0' } as const;

  it('costs a query, a read for each candidate and owner, and a read and a delete for each deletion', async () => {
    await using at = await estate(due);
    for (const name of ['a', 'b']) at.sub.deleteVm(at.sub.createVm(`shoot--one-${name}`).vm);
    at.sub.createVm('shoot--one-c');
    at.world.advance(DAY);
    const report = await at.sweepNow(all);
    expect(report).toMatchObject({ complete: true, errors: [], counts: { deleted: 6 } });
    expect(report.calls).toEqual({
      ResourceGraph_Resources: 1,
      VirtualMachines_Get: 2,
      NetworkInterfaces_Get: 2 + 2,
      NetworkInterfaces_Delete: 2,
      NetworkInterfaces_Poll: 2,
      Disks_Get: 4 + 4,
      Disks_Delete: 4,
      Disks_Poll: 4,
    });
    expect(at.sub.names()).toHaveLength(4);
  });

  it('asks once for every thousand candidates of all subscriptions, and for an owner once', async () => {
    const other = '22222222-2222-3333-4444-555555555555';
    await using at = await estate({}, [SUBSCRIPTION, other]);
    const tags = { 'gleaner-owner': 'gone' };
    for (let index = 0; index < 600; index += 1) {
      at.sub.createDisk(`d-${index}`, { tags });
      at.simulator.subscription(other).createDisk(`d-${index}`, { tags });
    }
    at.world.advance(DAY);
    const { report } = await sweep(at.engine, 'plan', { subscriptions: [SUBSCRIPTION, other] }, observe);
    expect(report).toMatchObject({ complete: true, errors: [], counts: { listed: 1200 } });
    expect(report.calls).toEqual({ ResourceGraph_Resources: 2, Disks_ListByResourceGroup: 2, VirtualMachines_Get: 2 });
    expect(at.deletes()).toEqual([]);
  });

  it('of a resource group reads its lists page by page', async () => {
    await using at = await estate(due);
    at.sub.pageSize = 2;
    at.sub.casing = 'mixed';
    at.sub.deleteVm(at.sub.createVm('shoot--one-a', { dataDisks: 4 }).vm);
    at.sub.deleteVm(at.sub.createVm('shoot--two-a', { group: 'shoot--two' }).vm);
    at.world.advance(DAY);
    const report = await at.sweepNow(group);
    expect(report).toMatchObject({ complete: true, counts: { deleted: 6 } });
    expect(report.calls).toMatchObject({ Disks_ListByResourceGroup: 3, NetworkInterfaces_ListByResourceGroup: 1 });
    expect(at.sub.names()).toEqual(['shoot--two-a-0-data-disk', 'shoot--two-a-nic', 'shoot--two-a-os-disk']);
  });
});

describe('many candidates of one group', () => {
  const furnish = async (living: number) => {
    const at = await estate({ grace: '0', minAge: '0', settle: '0' });
    for (let index = 0; index < 60; index += 1) at.sub.createDisk(`shoot--one-7-${index}-data-disk`);
    for (let index = 0; index < living; index += 1) at.sub.createDisk(`other-${index}`, { tags: {} });
    at.world.advance(DAY);
    return at;
  };

  it('are confirmed by the list of their group, and read one by one again before they are deleted', async () => {
    await using at = await furnish(0);
    const report = await at.sweepNow(all);
    expect(report.counts.deleted).toBe(60);
    expect(report.calls).toMatchObject({ Disks_ListByResourceGroup: 1, Disks_Get: 60, Disks_Delete: 60 });
  });

  it('are read one by one where the list is refused, or where the group is much larger than they are', async () => {
    await using refused = await furnish(0);
    const no = { kind: 'error', status: 403, code: 'AuthorizationFailed', message: 'no' } as const;
    refused.world.faults.inject('Microsoft.Compute/disks/read', no, { target: /disks$/i });
    const first = await refused.sweepNow(all);
    expect(first).toMatchObject({ complete: true, counts: { deleted: 60 } });
    expect(first.calls.Disks_Get).toBe(120);
    await using large = await furnish(500);
    large.sub.pageSize = 10;
    const second = await large.sweepNow(all);
    expect(second.counts.deleted).toBe(60);
    expect(second.calls.Disks_ListByResourceGroup).toBeLessThanOrEqual(6);
  });
});

describe('Resource Graph', () => {
  const due = { grace: '0', minAge: '0', settle: '0' } as const;

  it('stale: what it still shows as free, and is attached again or gone, stays untouched', async () => {
    await using at = await estate(due);
    const lost = at.sub.createVm('shoot--one-a');
    const other = at.sub.createVm('shoot--one-b');
    at.sub.deleteVm(lost.vm);
    at.world.advance(DAY);
    at.sub.graphLagMs = 30 * 60 * MINUTE;
    at.sub.attachNic(lost.nic, other.vm);
    at.sub.attachDisk(lost.disks[0] ?? '', other.vm);
    at.sub.remove(lost.disks[1] ?? '');
    const report = await at.sweepNow(all);
    expect(report).toMatchObject({ complete: true, items: [], counts: { deleted: 0 } });
    expect(report.calls).toMatchObject({ Disks_Get: 2, NetworkInterfaces_Get: 1 });
    expect(at.deletes()).toEqual([]);
  });

  it('stale: what it does not know yet is found by the sweep after', async () => {
    await using at = await estate(due);
    at.sub.graphLagMs = 60 * MINUTE;
    const lost = at.sub.createVm('shoot--one-a');
    at.world.advance(DAY);
    at.sub.deleteVm(lost.vm);
    at.world.advance(30 * MINUTE);
    expect((await at.sweepNow(all)).counts.deleted).toBe(0);
    at.world.advance(31 * MINUTE);
    expect((await at.sweepNow(all)).counts.deleted).toBe(3);
  });

  it.each<[string, (at: Awaited<ReturnType<typeof estate>>) => void, string]>([
    [
      'truncated',
      ({ simulator }) => {
        simulator.graph.truncateAt = 2;
      },
      'ResultTruncated',
    ],
    [
      'throttled for long',
      ({ world }) =>
        world.faults.inject(GRAPH, { kind: 'error', status: 429, code: 'RateLimiting', message: '', retryAfterS: 60 }),
      'RateLimiting',
    ],
    ['cut off', ({ world }) => world.faults.inject(GRAPH, { kind: 'cut' }), 'PARSE_ERROR'],
    ['empty', ({ world }) => world.faults.inject(GRAPH, { kind: 'empty' }), 'TypeError'],
    ['without its second half', ({ world }) => world.faults.inject(GRAPH, { kind: 'partial' }), 'MissingPage'],
  ])('%s: nothing is deleted on it, and the report says that it is incomplete', async (_, spoil, code) => {
    await using at = await estate(due);
    for (const name of ['a', 'b']) at.sub.deleteVm(at.sub.createVm(`shoot--one-${name}`).vm);
    at.world.advance(DAY);
    spoil(at);
    const report = await at.sweepNow(all);
    expect(report.complete).toBe(false);
    expect(report.errors.map((error) => error.code)).toContain(code);
    expect(at.deletes()).toEqual([]);
  });

  it('lacking its second page: nothing of that page is deleted, and the report says that it is incomplete', async () => {
    await using at = await estate({ ...due, budget: { perRun: 5000, perHour: 5000 } });
    for (let index = 0; index < 1200; index += 1)
      at.sub.createDisk(`shoot--one-${String(index).padStart(4, '0')}-os-disk`);
    at.world.advance(DAY);
    at.world.faults.inject(GRAPH, { kind: 'partial' }, { skip: 1 });
    const report = await at.sweepNow(all);
    expect(report.complete).toBe(false);
    expect(report.errors.map((error) => error.code)).toContain('MissingPage');
    expect(at.deletes()).toEqual([]);
  });

  it('throttled for a moment: asked again at its pace', async () => {
    await using at = await estate(due);
    at.simulator.throttle();
    at.simulator.graph.quota = 1;
    at.sub.deleteVm(at.sub.createVm('shoot--one-a').vm);
    at.world.advance(DAY);
    for (const _ of [1, 2, 3]) expect((await at.sweepNow(all)).complete).toBe(true);
    expect(at.world.requests.filter(({ operation }) => operation === GRAPH).map(({ status }) => status)).toEqual([
      200, 200, 429, 200,
    ]);
    expect(at.sub.names()).toEqual([]);
  });
});

describe('what is protected', () => {
  const due = { grace: '0', minAge: '0', settle: '0' } as const;

  it("stays with its reason: in use without a VM, a service's, site recovery's, a persistent volume's", async () => {
    await using at = await estate(due);
    const states = ['Reserved', 'ActiveSAS', 'ActiveSASFrozen', 'Frozen', 'ActiveUpload', 'ReadyToUpload', 'Unheard'];
    for (const diskState of states) at.sub.createDisk(`shoot--one-${diskState}-os-disk`, { properties: { diskState } });
    at.sub.createDisk('shoot--one-a-os-disk-ASRReplica');
    at.sub.createDisk('shoot--one-b-os-disk', {
      tags: { ...mcmTags('shoot--one'), 'kubernetes.io-created-for-pv-name': 'pv-1' },
    });
    at.sub.createPrivateEndpointNic('shoot--one-c-nic');
    at.sub.createDisk('shoot--one-d-os-disk');
    at.world.advance(DAY);
    const marked = {
      'shoot--one-a-os-disk-ASRReplica': 'protected site-recovery: name=shoot--one-a-os-disk-ASRReplica',
      'shoot--one-b-os-disk': 'protected persistent-volume: tag kubernetes.io-created-for-pv-name=pv-1',
      'shoot--one-c-nic': `protected private-endpoint: privateEndpoint=${at.sub.groupId('shoot--one')}/providers/Microsoft.Network/privateEndpoints/shoot--one-c-nic-pe`,
    };
    const kept = async (request: object) => {
      const { items } = await at.sweepNow(request);
      const reasons = items
        .filter(({ verdict }) => verdict === 'keep')
        .map(({ name, reason, evidence }) => [name, `${reason} ${evidence[0]}`]);
      return Object.fromEntries(reasons) as Record<string, string>;
    };
    expect(await kept(all)).toEqual(marked);
    // Resource Graph is asked for the unattached alone; a group's list shows the others too.
    const inUse = states.map((state) => [`shoot--one-${state}-os-disk`, `attached state ${state}, Succeeded`]);
    expect(await kept(group)).toEqual({ ...marked, ...Object.fromEntries(inUse) });
    expect(at.deletes()).toEqual(['shoot--one-d-os-disk']);
  });

  it.each<[string, (at: Awaited<ReturnType<typeof estate>>) => void, string]>([
    ['a lock on the subscription', ({ sub }) => sub.lock(`/subscriptions/${sub.id}`), 'ScopeLocked'],
    ['a lock on the group', ({ sub }) => sub.lock(sub.groupId('SHOOT--ONE'), 'ReadOnly'), 'ScopeLocked'],
    ['a deny assignment', ({ sub }) => sub.deny(sub.groupId('shoot--one')), 'DenyAssignmentAuthorizationFailed'],
    ['a missing permission', ({ sub }) => void sub.denied.add('Microsoft.Compute/disks/delete'), 'AuthorizationFailed'],
  ])('%s: the delete fails with its reason and is not tried again; elsewhere it goes on', async (_, protect, code) => {
    await using at = await estate(due);
    at.sub.createDisk('shoot--one-a-os-disk');
    protect(at);
    at.world.advance(DAY);
    const report = await at.sweepNow(all);
    expect(report.items.map(({ name, outcome }) => [name, outcome])).toEqual([['shoot--one-a-os-disk', 'failed']]);
    expect(report.errors.map((error) => error.code)).toEqual([code]);
    expect(at.deletes()).toEqual(['shoot--one-a-os-disk']);
    expect(at.sub.names()).toEqual(['shoot--one-a-os-disk']);
  });

  it('a VM that may not be read keeps all that names it', async () => {
    await using at = await estate(due);
    at.sub.createDisk('shoot--one-a-os-disk');
    at.sub.denied.add('Microsoft.Compute/virtualMachines/read');
    at.world.advance(DAY);
    const report = await at.sweepNow(all);
    expect(report.items.map(({ verdict, reason }) => [verdict, reason])).toEqual([['keep', 'owner-unproven']]);
    expect(at.deletes()).toEqual([]);
  });

  it('a deletion that was accepted and failed at its end is no success', async () => {
    await using at = await estate(due);
    const disk = at.sub.createDisk('shoot--one-a-os-disk');
    at.sub.failAtEnd.set(disk.toLowerCase(), {
      code: 'InternalExecutionError',
      message: 'An internal error occurred.',
    });
    at.world.advance(DAY);
    const report = await at.sweepNow(all);
    expect(report).toMatchObject({ counts: { deleted: 0 } });
    expect(report.errors.map((error) => error.code)).toEqual(['InternalExecutionError']);
  });

  it('an attach in flight reads free and would be deleted: the second look finds it attached', async () => {
    await using at = await estate({ ...due, settle: '5m' });
    const lost = at.sub.createVm('shoot--one-a', { dataDisks: 0 });
    const other = at.sub.createVm('shoot--one-b', { dataDisks: 0 });
    at.sub.deleteVm(lost.vm);
    at.world.advance(DAY);
    at.sub.attachDisk(lost.disks[0] ?? '', other.vm, MINUTE);
    await at.sweepNow(all);
    at.world.advance(6 * MINUTE);
    await at.sweepNow(all);
    expect(at.deletes()).toEqual(['shoot--one-a-nic']);
    expect(at.sub.disk(lost.disks[0] ?? '').managedBy).toBe(other.vm);
  });
});
