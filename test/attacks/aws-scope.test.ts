import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { explain } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { parseCall } from '../../shared/core/request.ts';
import { parseWork } from '../../shared/core/work.ts';
import { delegate } from '../support/run.ts';
import { AT_ONCE, CNI, DEAD, enforce, MCM, MINUTE, nic, observe, Stage, verdicts, vol } from './support.ts';

let s: Stage;
beforeEach(async () => {
  s = await Stage.start();
});
afterEach(() => s.close());

describe('tampered work', () => {
  const claim = async (id: string, owner: string) =>
    s.store.put(
      { partition: 'claim|aws:us-east-1', sort: `aws:us-east-1:${id}` },
      { owner, place: 'us-east-1', name: 'x', since: '2026-11-01T00:00:00.000Z' },
      new Date('2030-01-01'),
      'any',
    );
  const claimed = async () => {
    const living = s.region.run();
    const id = s.region.createVolume({ tags: { 'gleaner-owner': DEAD } });
    await claim(id, living);
    return id;
  };

  it('W3 upper-case id with a right key: the same', async () => {
    const id = await claimed();
    await s.reap([{ ...vol(id), id: id.toUpperCase() }]);
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('W5 names attached, foreign, protected, living: nothing', async () => {
    const vm = s.region.run({ volumes: [{ tags: { 'gleaner-owner': DEAD } }], enis: [{ tags: { [CNI]: DEAD } }] });
    const items = [
      ...(s.region.instances.get(vm)?.BlockDeviceMappings ?? []).map(({ Ebs }) => vol(Ebs?.VolumeId ?? '')),
      ...(s.region.instances.get(vm)?.NetworkInterfaces ?? []).map(({ NetworkInterfaceId }) =>
        nic(NetworkInterfaceId ?? ''),
      ),
      vol(s.region.createVolume({ tags: { 'gleaner-owner': vm } })),
      vol(s.region.createVolume({ tags: { team: 'x' } })),
      vol(s.region.createVolume({ tags: { 'gleaner-owner': DEAD, 'gleaner-keep': '' } })),
    ];
    await s.reap(items);
    expect(s.deletes()).toEqual([]);
  });
  it('W6 an unknown type is not dropped without a word', async () => {
    const id = s.region.createVolume({ tags: MCM('a') });
    const report = await s.reap([{ ...vol(id), type: 'ebs-volumes' }]).catch(() => 'thrown');
    const told =
      report === 'thrown' || s.queue.dead.length > 0 || (report as { counts: { listed: number } }).counts.listed > 0;
    expect(told).toBe(true);
  });
  it('W7 observe: a reap message deletes nothing and goes nowhere', async () => {
    const id = s.region.createVolume({ tags: MCM('a') });
    await reap({ ...s.engine(), queue: s.queue }, s.work([vol(id)]), observe);
    expect(s.world.writes()).toEqual([]);
  });
  it('W8 parseWork refuses what is strange', () => {
    for (const bad of [
      null,
      [],
      'x',
      {},
      { ...s.work([vol('vol-1')]), extra: 1 },
      { ...s.work([]) },
      { ...s.work([vol('v')]), notBefore: 'x' },
      { ...s.work([vol('v')]), attempt: -1 },
    ])
      expect(() => parseWork(bad)).toThrow();
  });
  it('W9 a partial reread (answer lacks one): the claim of a living VM must survive', async () => {
    const id = await claimed();
    s.world.faults.inject('DescribeVolumes', { kind: 'partial' }, { times: 1 });
    await s.reap([vol(id)]);
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('W10 a lagging reread says gone of what is there: the claim of a living VM must survive', async () => {
    s.region.volumes.lagMs = 2 * MINUTE;
    const id = await claimed();
    await s.reap([vol(id)]);
    s.world.advance(3 * MINUTE);
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
});

describe('what a call names', () => {
  it('S2 vm and resource group: only what is in both', async () => {
    const vm = s.region.run({ tags: MCM('m-1') });
    s.region.terminate(vm);
    const id = s.region.createVolume({ tags: MCM('m-1') });
    s.region.groups.set('g', { arns: [] });
    await s.run(AT_ONCE, { vm, resourceGroup: 'g' });
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('S2b an empty group alone: nothing', async () => {
    s.region.createVolume({ tags: MCM('m-1') });
    s.region.groups.set('g', { arns: [] });
    await s.run(AT_ONCE, { resourceGroup: 'g' });
    expect(s.deletes()).toEqual([]);
  });
  it('S2c a group with QueryErrors: nothing', async () => {
    const id = s.region.createVolume({ tags: MCM('m-1') });
    s.region.groups.set('g', { arns: [s.region.arn('volume', id)], queryErrors: [{ ErrorCode: 'X', Message: 'x' }] });
    await s.run(AT_ONCE, { resourceGroup: 'g' });
    expect(s.deletes()).toEqual([]);
  });
  it('S3 clusters compare with their case: EKS has both prod and Prod', async () => {
    const id = s.region.createVolume({
      tags: { Name: 'm', 'kubernetes.io/cluster/Prod': '1', 'kubernetes.io/role/node': '1' },
    });
    await s.run({ ...AT_ONCE, clusters: ['prod'] });
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('S4 the invoke body: observe cannot be talked into enforce, strange bodies are refused', () => {
    for (const bad of [
      null,
      {},
      { action: 'delete' },
      { action: 'sweep', mode: 'ENFORCE' },
      { action: 'sweep', scope: { region: '' } },
      { action: 'sweep', scope: { clusters: 'x' } },
      { action: 'sweep', releaseBreaker: true },
      { action: 'sweep', mode: 'enforce' },
    ])
      expect(() => parseCall(bad, 'observe')).toThrow();
    expect(parseCall({ action: 'sweep' }, 'observe')).toMatchObject({ mode: 'observe' });
    expect(parseCall({ action: 'plan', mode: 'enforce' }, 'enforce')).toMatchObject({ action: 'plan' });
  });
  it('S5 an event of a region that the deployment does not cover (vmEvent opens what the event names)', async () => {
    const eu = s.simulator.region('eu-west-1');
    eu.createEni({ tags: { [CNI]: DEAD } });
    await vmEvent(
      { ...s.engine(), queue: s.queue },
      {
        eventId: 'e',
        cloud: 'aws',
        change: 'deleted',
        scopeId: 'aws:eu-west-1',
        vmId: DEAD,
        place: 'eu-west-1',
        time: new Date(s.world.now().getTime() - 10 * MINUTE),
      },
      enforce,
    );
    expect(s.queue.sent.length + s.deletes().length).toBeLessThanOrEqual(1); // recorded only: the engine has no list of regions
  });
});

describe('plan, explain and observe', () => {
  const furnish = () => {
    s.region.createVolume({ tags: MCM('a') });
    s.region.createEni({ tags: { [CNI]: DEAD } });
    const vm = s.region.run({ tags: MCM('b'), volumes: [{}] });
    s.region.createEni({ tags: { [CNI]: vm } });
  };
  it('P1 plan writes nothing, whatever it is asked, with a tripped breaker, an open intent and a person’s release', async () => {
    furnish();
    const value = { item: { id: 'vol-1', type: 'ebs-volume' }, runId: 'old', at: s.world.now().toISOString() };
    await s.store.put(
      { partition: 'intent|aws:us-east-1', sort: 'aws:us-east-1:vol-1' },
      value,
      new Date('2030-01-01'),
      'any',
    );
    await new Ledger(s.store).tripBreaker('aws:us-east-1', { trippedAt: s.world.now(), gone: 30, known: 40 }, 1000);
    const writes: string[] = [];
    const watched = delegate(s.store, {
      put: async (key) => {
        writes.push(`put ${key.partition}`);
        return 'v';
      },
      delete: async (key) => void writes.push(`delete ${key.partition}`),
    });
    for (const request of [{}, { vm: 'a' }, { vm: DEAD }, { cluster: 'shoot' }])
      for (const policy of [AT_ONCE, { ...AT_ONCE, snapshot: 'before-delete' as const }, {}]) {
        const engine = { ...s.engine(policy, watched), queue: s.queue };
        await sweep(engine, 'plan', request, { ...enforce, releaseBreaker: true });
        expect(engine.notices).toEqual([]);
      }
    await explain(s.engine(AT_ONCE, watched), [...s.region.volumes.all()][0]?.VolumeId ?? '', {}, enforce);
    expect(writes).toEqual([]);
    expect(s.world.writes()).toEqual([]);
    expect(s.queue.sent).toEqual([]);
  });
  it('P2 observe: sweep, event, reap write nothing in the cloud and send nothing to the deleter', async () => {
    furnish();
    const engine = { ...s.engine({ ...AT_ONCE, snapshot: 'before-delete' }), queue: s.queue };
    await sweep(engine, 'sweep', {}, observe);
    await vmEvent(
      engine,
      {
        eventId: 'e',
        cloud: 'aws',
        change: 'deleted',
        scopeId: 'aws:us-east-1',
        vmId: DEAD,
        place: 'us-east-1',
        time: new Date(s.world.now().getTime() - 10 * MINUTE),
      },
      observe,
    );
    expect(s.world.writes()).toEqual([]);
    expect(s.queue.sent).toEqual([]);
  });
  it('P3 budget 0 deletes nothing', async () => {
    furnish();
    await s.run({ ...AT_ONCE, budget: { perRun: 0 } });
    await s.run({ ...AT_ONCE, budget: { perHour: 0 } });
    for (const one of Array.from(s.region.volumes.all()))
      await s.reap([vol(one.VolumeId ?? '')], { ...AT_ONCE, budget: { perHour: 0 } });
    expect(s.deletes()).toEqual([]);
  });
  it('P4 a CNI creation time that is no date but that JavaScript reads as one ("1") does not make an ENI old', async () => {
    s.region.createEni({ tags: { [CNI]: DEAD, 'node.k8s.amazonaws.com/createdAt': '1' } });
    const report = await s.run({ grace: '0', minAge: '10m' });
    expect(s.deletes()).toEqual([]);
    expect(Object.values(verdicts(report))[0]).not.toContain('reap');
  });
  it('P5 empty, future creation times keep', async () => {
    for (const at of ['', 'soon', '2031-01-01T00:00:00Z'])
      s.region.createEni({ tags: { [CNI]: DEAD, 'node.k8s.amazonaws.com/createdAt': at } });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('P6 an ENI with an Elastic IP associated is not deleted', async () => {
    const id = s.region.createEni({
      tags: { [CNI]: DEAD },
      over: { Association: { PublicIp: '1.2.3.4', AllocationId: 'eipalloc-1', IpOwnerId: '123456789012' } },
    });
    await s.run();
    expect(s.region.enis.get(id)).toBeDefined();
  });
});
