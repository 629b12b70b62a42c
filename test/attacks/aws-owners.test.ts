import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownerKey } from '../../shared/core/ports.ts';
import { said, scopeOn, scripted } from '../aws/scripted.ts';
import { AT_ONCE, CNI, DEAD, MCM, MINUTE, nic, SHOOT, Stage, verdicts, vol } from './support.ts';

let s: Stage;
beforeEach(async () => {
  s = await Stage.start();
});
afterEach(() => s.close());
const CAPA = 'sigs.k8s.io/cluster-api-provider-aws/cluster/c';

describe('living owners', () => {
  it('O1 an EC2 managed instance (EKS Auto Mode) that the account hides: only IncludeManagedResources shows it', async () => {
    const id = 'i-0aaaaaaaaaaaaaaaa';
    await using server = await scripted(({ action, parameters }) => {
      const shown = parameters.get('IncludeManagedResources') === 'true';
      const one = `<item><reservationId>r-1</reservationId><instancesSet><item><instanceId>${id}</instanceId><instanceState><code>16</code><name>running</name></instanceState><operator><managed>true</managed><principal>eks.amazonaws.com</principal><hiddenByDefault>true</hiddenByDefault></operator></item></instancesSet></item>`;
      return said(action, `<reservationSet>${shown ? one : ''}</reservationSet>`);
    });
    const scope = await scopeOn(server.url);
    const ref = { by: 'id' as const, value: id, place: 'us-east-1' };
    const answer = (await scope.owners.lookup([ref], AbortSignal.timeout(5000))).get(ownerKey(ref));
    expect(answer?.state).not.toBe('gone');
  });

  it('O2 owner tag is the ARN of a living instance', async () => {
    const vm = s.region.run();
    const id = s.region.createVolume({
      tags: { 'gleaner-owner': `arn:aws:ec2:us-east-1:123456789012:instance/${vm}` },
    });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O3 owner tag lists two instances, one alive', async () => {
    const vm = s.region.run();
    const id = s.region.createVolume({ tags: { 'gleaner-owner': `${vm},${DEAD}` } });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O4 owner tag of an id with blanks around', async () => {
    const vm = s.region.run();
    const id = s.region.createVolume({ tags: { 'gleaner-owner': ` ${vm} ` } });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O5 owner tag region/id or account/id of an instance elsewhere', async () => {
    const vm = s.simulator.region('eu-west-1').run();
    const id = s.region.createVolume({ tags: { 'gleaner-owner': `eu-west-1/${vm}` } });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O6 upper case id, alive', async () => {
    const vm = s.region.run();
    s.region.createVolume({ tags: { 'gleaner-owner': vm.toUpperCase() } });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('O8 two cluster tags on a Gardener volume: the VM carries the second only', async () => {
    s.region.run({ tags: { Name: 'm-1', 'kubernetes.io/cluster/b': '1', 'kubernetes.io/role/node': '1' } });
    const id = s.region.createVolume({
      tags: {
        'kubernetes.io/cluster/a': '1',
        'kubernetes.io/cluster/b': '1',
        'kubernetes.io/role/node': '1',
        Name: 'm-1',
      },
    });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O9 Cluster API: the Machine lives under another Name, and a terminated instance has the Machine’s name as Name', async () => {
    const old = s.region.run({ tags: { Name: 'machine-1', [CAPA]: 'owned', MachineName: 'default/machine-1' } });
    s.region.terminate(old);
    s.region.run({ tags: { Name: 'aws-machine-new', [CAPA]: 'owned', MachineName: 'default/machine-1' } });
    const id = s.region.createVolume({
      tags: { Name: 'machine-1', [CAPA]: 'owned', MachineName: 'default/machine-1' },
    });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O11 ENI with a CNI tag that cannot be parsed and a dead gleaner-owner', async () => {
    const id = s.region.createEni({ tags: { [CNI]: 'i-nonsense', 'gleaner-owner': DEAD } });
    await s.run();
    expect(s.region.enis.get(id)).toBeDefined();
  });
  it('O12 ENI: tag dead, description names a living one in mixed case', async () => {
    const vm = s.region.run();
    s.region.createEni({ tags: { [CNI]: DEAD }, description: `AWS-k8s-${vm.toUpperCase()}` });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('O12b ENI: tag dead, description aws-K8S-<living> with a trailing blank', async () => {
    const vm = s.region.run();
    s.region.createEni({ tags: { [CNI]: DEAD }, description: `aws-K8S-${vm} ` });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('O13 ownerKey collides: a name with a colon hides a living MCM owner', async () => {
    // ref 1: name `db:kubernetes.io/cluster/x`, no cluster tag. ref 2: name `db`, cluster tag `kubernetes.io/cluster/x:`.
    s.region.run({ tags: { Name: 'db', 'kubernetes.io/cluster/x:': '1', 'kubernetes.io/role/node': '1' } });
    const id = s.region.createVolume({
      tags: {
        'gleaner-owner': 'db:kubernetes.io/cluster/x',
        Name: 'db',
        'kubernetes.io/cluster/x:': '1',
        'kubernetes.io/role/node': '1',
      },
    });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('O14 stopped, stopping, pending, shutting-down owners keep', async () => {
    const stopped = s.region.run();
    s.region.stop(stopped);
    const stopping = s.region.run();
    s.region.stop(stopping, { stoppingMs: 60 * MINUTE });
    const pending = s.region.run({ pendingMs: 60 * MINUTE });
    const shutting = s.region.run();
    s.region.terminate(shutting, { shuttingDownMs: 60 * MINUTE });
    for (const vm of [stopped, stopping, pending, shutting]) s.region.createEni({ tags: { [CNI]: vm } });
    const report = await s.run();
    expect(Object.values(verdicts(report)).every((one) => one === 'keep owner-alive none')).toBe(true);
    expect(report.counts.keep).toBe(4);
  });
  it('O15 two names, one terminated, one stopped', async () => {
    const a = s.region.run({ tags: MCM('twice') });
    s.region.terminate(a);
    const b = s.region.run({ tags: MCM('twice') });
    s.region.stop(b);
    s.region.createVolume({ tags: MCM('twice') });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('O16 a partial DescribeInstances answer (well-formed, no token): the living is absent', async () => {
    const vms = [s.region.run(), s.region.run(), s.region.run(), s.region.run()];
    for (const vm of vms) s.region.createEni({ tags: { [CNI]: vm } });
    s.world.faults.inject('DescribeInstances', { kind: 'partial' });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it.each(['cut', 'empty', 'drop'] as const)('O17 a %s DescribeInstances answer', async (kind) => {
    s.region.createEni({ tags: { [CNI]: s.region.run() } });
    s.world.faults.inject('DescribeInstances', { kind });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('O18 lag: the running instance is not shown yet (eventual consistency), its ENI is', async () => {
    s.region.instances.lagMs = 5 * MINUTE;
    const vm = s.region.run();
    const id = s.region.createEni({ tags: { [CNI]: vm } });
    await s.run({});
    s.world.advance(4 * MINUTE);
    await s.run({});
    s.world.advance(27 * MINUTE);
    await s.run({});
    expect(s.region.enis.get(id)).toBeDefined();
  });
});

describe('claims', () => {
  it('C1 a static persistent volume: cluster tag only, mounted by a node that is rolled while the workload is scaled to 0', async () => {
    const id = s.region.createVolume({ tags: { [SHOOT]: '1', Name: 'pgdata' } });
    const node = s.region.run({ tags: MCM('node-1') });
    s.region.attachVolume(id, node);
    await s.event('deleting', node);
    s.region.detach(id);
    s.region.terminate(node);
    s.world.advance(40 * MINUTE);
    await s.run({});
    s.world.advance(40 * MINUTE);
    await s.run({});
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('C1b the same with a human owner tag on nothing, by the event path', async () => {
    const id = s.region.createVolume({ tags: { [SHOOT]: 'owned', Name: 'pgdata' } });
    const node = s.region.run({ tags: MCM('node-1') });
    s.region.attachVolume(id, node);
    await s.event('started', node);
    s.region.terminate(node);
    const at = s.world.now();
    s.world.advance(6 * MINUTE);
    await s.event('deleted', node, at, {} as never);
    s.world.advance(40 * MINUTE);
    const work = s.queue.sent.shift()?.work;
    if (work?.kind === 'reap') await s.reap(work.items, {}, { eventTime: work.eventTime ?? at.toISOString() });
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('C3 EKS Auto Mode’s CSI tag (ebs.csi.eks.amazonaws.com/cluster) marks a persistent volume', async () => {
    const id = s.region.createVolume({
      tags: { 'ebs.csi.eks.amazonaws.com/cluster': 'true', 'eks:eks-cluster-name': 'c', 'gleaner-owner': DEAD },
    });
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it.each([
    ['kubernetes.io/created-for/pvc/name', 'data-0'],
    ['kubernetes.io/created-for/pv/name', 'pv-1'],
    ['CSIVolumeName', 'pvc-1'],
    ['ebs.csi.aws.com/cluster', 'true'],
    ['gleaner-keep', ''],
    ['gleaner-keep', 'False'],
    ['gleaner-keep', ' false'],
  ])('C4 %s=%s with a dead owner tag keeps', async (key, value) => {
    s.region.createVolume({ tags: { 'gleaner-owner': DEAD, [SHOOT]: 'owned', [key]: value } });
    await s.run({ ...AT_ONCE, optOutTags: ['mine'] });
    expect(s.deletes()).toEqual([]);
  });
  it('C5 multi-attach, creating, error, managed, no_manage, EFS/Lambda/branch ENIs with CNI tags keep', async () => {
    const tags = { 'gleaner-owner': DEAD };
    s.region.createVolume({ tags }, { MultiAttachEnabled: true });
    for (const State of ['creating', 'error', 'deleting', 'in-use', 'weird'] as never[])
      s.region.createVolume({ tags }, { State });
    s.region.createVolume({ tags }, { Operator: { Managed: true, Principal: 'x' } });
    const eni = { [CNI]: DEAD };
    s.region.createEni({ tags: { ...eni, 'node.k8s.amazonaws.com/no_manage': 'false' } });
    for (const InterfaceType of ['lambda', 'efs', 'branch', 'trunk', 'efa', 'vpc_endpoint', 'unheard'] as never[])
      s.region.createEni({ tags: eni, over: { InterfaceType } });
    s.region.createEni({ tags: eni, over: { RequesterManaged: true } });
    s.region.createEni({ tags: eni, description: 'ELB app/x' });
    for (const one of Array.from(s.region.enis.all())) await s.reap([nic(one.NetworkInterfaceId ?? '')]);
    for (const one of Array.from(s.region.volumes.all())) await s.reap([vol(one.VolumeId ?? '')]);
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
});
