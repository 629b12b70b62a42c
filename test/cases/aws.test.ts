import type { NetworkInterfaceType } from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import type { PolicyInput } from '../../shared/core/policy.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import type { Region } from '../../simulator/aws/region.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';
import { enforce, MINUTE, TestQueue, testEngine } from '../support/run.ts';

const CNI = 'node.k8s.amazonaws.com/instance_id';
const DEAD = 'i-00000000000000000';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
const AT_ONCE: PolicyInput = { grace: '0', minAge: '0' };

/** Faults that users of such tools reported in public, each with the number and the place where it was seen. */
describe('cases from the field, on AWS', () => {
  let simulator: AwsSimulator;
  let world: World;
  let region: Region;
  let store: MemoryLedger;
  let queue: TestQueue;

  beforeEach(async () => {
    world = new World();
    simulator = await startAwsSimulator({ world });
    region = simulator.region();
    store = new MemoryLedger(world.clock);
    queue = new TestQueue();
    Object.assign(process.env, awsEnvironment(simulator.url));
    world.advance(MINUTE);
  });
  afterEach(() => simulator.close());

  const engine = (policy: PolicyInput) => ({
    ...testEngine(aws({ region: 'us-east-1' }) as never, store, policy),
    clock: world.clock,
  });
  const run = async (policy: PolicyInput = AT_ONCE) => (await sweep(engine(policy), 'sweep', {}, enforce)).report;
  const died = (vmId: string, time = world.now()) =>
    vmEvent(
      { ...engine(AT_ONCE), queue },
      { eventId: 'e', cloud: 'aws', change: 'deleted', scopeId: 'aws:us-east-1', vmId, place: 'us-east-1', time },
      enforce,
    );
  const verdicts = ({ items }: Report) =>
    Object.fromEntries(items.map(({ id, verdict, reason, outcome }) => [id, `${verdict} ${reason} ${outcome}`]));
  const deletes = () => world.writes().filter(({ operation }) => operation.startsWith('Delete'));

  it('1 (amazon-vpc-cni-k8s 69, 608, 1223): the first delete says in use; retried later, then deleted', async () => {
    const vm = region.run();
    const eni = region.createEni({ tags: { [CNI]: vm }, description: `aws-K8S-${vm}` });
    region.terminate(vm);
    region.busyUntilMs.set(eni, world.now().getTime() + 6 * MINUTE);
    const at = world.now();
    world.advance(5 * MINUTE);
    await died(vm, at);
    const workOff = () => reap({ ...engine(AT_ONCE), queue }, queue.sent.shift()?.work as ReapWork, enforce);
    expect((await workOff()).counts).toMatchObject({ deferred: 1, failed: 0 });
    expect(queue.sent).toMatchObject([{ delayMs: MINUTE, work: { attempt: 1 } }]);
    world.advance(MINUTE);
    expect((await workOff()).counts.deleted).toBe(1);
    expect(region.enis.get(eni)).toBeUndefined();
  });

  it('3 (amazon-vpc-cni-k8s 1023): a primary ENI with an owner tag only is found by it', async () => {
    const eni = region.createEni({ tags: { [CNI]: DEAD }, description: '' });
    expect(verdicts(await run())).toEqual({ [eni]: 'reap orphan deleted' });
  });

  it('4 (aws-nuke 1232, boto3 2218) and 6 (cloud-governance 952): attached or managed by a service: never touched', async () => {
    const attachment = {
      AttachmentId: 'ela-attach-1',
      InstanceOwnerId: 'amazon-aws',
      DeviceIndex: 1,
      Status: 'attached' as const,
    };
    for (const InterfaceType of ['nat_gateway', 'lambda', 'network_load_balancer'] as NetworkInterfaceType[]) {
      region.createEni({
        tags: { [CNI]: DEAD },
        over: { RequesterManaged: true, InterfaceType, Status: 'in-use', Attachment: attachment },
      });
      region.createEni({ tags: { [CNI]: DEAD }, over: { RequesterManaged: true, InterfaceType } });
    }
    const vm = region.run({ enis: [{ tags: { [CNI]: DEAD } }] });
    const { counts, items } = await run();
    expect(counts).toMatchObject({ deleted: 0, failed: 0 });
    expect(new Set(items.map(({ reason }) => reason))).toEqual(new Set(['protected']));
    expect(world.writes()).toEqual([]);
    expect(region.instances.get(vm)?.NetworkInterfaces).toHaveLength(1);
  });

  it.each(['attaching', 'associated', 'detaching'] as const)(
    '7 (aws-terminator 353): %s is looked at again later',
    async (Status) => {
      const eni = region.createEni({ tags: { [CNI]: DEAD } });
      const claimed = { key: `aws:us-east-1:${eni}`, id: eni, type: 'ec2-network-interface' };
      region.changeEni(eni, { Status });
      const work: ReapWork = {
        kind: 'reap',
        runId: 'r',
        scopeId: 'aws:us-east-1',
        notBefore: world.now().toISOString(),
        attempt: 0,
        items: [claimed],
      };
      const report = await reap({ ...engine(AT_ONCE), queue }, work, enforce);
      expect(verdicts(report)).toEqual({ [eni]: 'wait changing none' });
      expect(queue.sent).toHaveLength(1);
      expect(deletes()).toEqual([]);
    },
  );

  it('9 (cloud-custodian 6011, 6242): gone between list and delete counts as done, the rest goes on', async () => {
    const [first, second] = [region.createVolume({ tags: MCM('a') }), region.createVolume({ tags: MCM('b') })];
    const gone = { kind: 'error', status: 400, code: 'InvalidVolume.NotFound', message: 'gone' } as const;
    world.faults.inject('DeleteVolume', gone, { target: new RegExp(first) });
    expect((await run()).counts).toMatchObject({ deleted: 2, failed: 0 });
    expect(region.volumes.get(second)).toBeUndefined();
  });

  it('11 (cloud-custodian 856, 11064): what has no tags yet is no candidate', async () => {
    const id = region.createVolume();
    expect((await run()).counts.listed).toBe(0);
    region.tag(id, MCM('late'));
    region.run({ name: 'late' });
    expect(verdicts(await run())).toEqual({ [id]: 'keep owner-alive none' });
  });

  it('12 (aws-ebs-csi-driver 1608): deleted only after its snapshot has completed', async () => {
    const id = region.createVolume({ tags: MCM('a') });
    const policy: PolicyInput = { ...AT_ONCE, snapshot: 'before-delete' };
    const limit = {
      kind: 'error',
      status: 400,
      code: 'SnapshotCreationPerVolumeRateExceeded',
      message: 'slow down',
    } as const;
    world.faults.inject('CreateSnapshot', limit, { times: 5 });
    expect((await run(policy)).counts.deleted).toBe(0);
    world.faults.clear();
    expect(verdicts(await run(policy))).toEqual({ [id]: 'reap orphan deferred' });
    expect(deletes()).toEqual([]);
    world.advance(MINUTE);
    expect(verdicts(await run(policy))).toEqual({ [id]: 'reap orphan deleted' });
  });

  it('19 (cloud-provider-azure 658): AWS compares tag keys with their case', async () => {
    const exact = region.createVolume({ tags: { 'gc-owner': DEAD } });
    region.createVolume({ tags: { 'GC-Owner': DEAD } });
    expect(verdicts(await run({ ...AT_ONCE, ownerTags: ['gc-owner'] }))).toEqual({ [exact]: 'reap orphan deleted' });
  });

  it('25 (MCM-provider-aws 127, MCM 583): 20 s old, its VM still being created: kept', async () => {
    const id = region.createVolume({ tags: MCM('new') });
    world.advance(20_000);
    expect(verdicts(await run({ grace: '0' }))).toEqual({ [id]: 'wait too-young none' });
  });

  it('26 (aws-nuke 367): DependencyViolation is failed, not removed', async () => {
    const eni = region.createEni({ tags: { [CNI]: DEAD } });
    world.faults.inject('DeleteNetworkInterface', {
      kind: 'error',
      status: 400,
      code: 'DependencyViolation',
      message: 'has a dependency',
    });
    const report = await run();
    expect(verdicts(report)).toEqual({ [eni]: 'reap orphan failed' });
    expect(report.errors).toMatchObject([{ code: 'DependencyViolation' }]);
  });

  it('29 (cloud-nuke 675, 734): plan writes nothing, in the cloud or in the ledger', async () => {
    region.createVolume({ tags: MCM('a') });
    const refuse = () => Promise.reject(new Error('a write in plan'));
    const watched = Object.assign(Object.create(null), {
      getMany: async () => [],
      get: async () => undefined,
      query: async function* () {},
      put: refuse,
      delete: refuse,
    });
    const { report } = await sweep({ ...engine(AT_ONCE), store: watched }, 'plan', {}, enforce);
    expect(report).toMatchObject({ complete: true, counts: { reap: 1 } });
    expect(world.writes()).toEqual([]);
  });

  it('31 (cloud-on-k8s 1722): unattached, without our tags: never a candidate', async () => {
    region.createVolume({ tags: { Name: 'data', team: 'x' } });
    region.createEni({ tags: { Name: 'mine' } });
    expect((await run()).counts.listed).toBe(0);
  });

  it('32 (boto3 1704): terminated a moment ago and still listed is gone', async () => {
    const vm = region.run({ name: 'a', tags: MCM('a'), volumes: [{ tags: MCM('a') }] });
    region.terminate(vm);
    world.advance(MINUTE);
    const report = await run();
    expect(report.items).toMatchObject([
      {
        outcome: 'deleted',
        owner: { state: 'gone' },
        evidence: expect.arrayContaining([expect.stringContaining('terminated')]),
      },
    ]);
  });

  it('33 (boskos 262): one type is denied, the other goes on, and what was recorded stays', async () => {
    const volume = region.createVolume({ tags: MCM('a') });
    region.createEni({ tags: { [CNI]: DEAD } });
    simulator.denied.add('DescribeNetworkInterfaces');
    const report = await run();
    expect(report).toMatchObject({ complete: false, errors: [{ code: 'UnauthorizedOperation' }] });
    expect(verdicts(report)).toEqual({ [volume]: 'reap orphan deleted' });
  });

  it('34 (MCM 544, bosh-azure-cpi 771): a new ENI that no list shows yet is found by the next sweep', async () => {
    const vm = region.run();
    region.lagMs = 5 * MINUTE;
    const eni = region.createEni({ tags: { [CNI]: vm } });
    region.terminate(vm);
    const at = world.now();
    world.advance(4 * MINUTE);
    await died(vm, new Date(at.getTime() - MINUTE));
    expect(queue.sent).toEqual([]);
    world.advance(6 * MINUTE);
    expect(verdicts(await run())).toEqual({ [eni]: 'reap orphan deleted' });
  });

  it('36 (terraform-provider-aws 146): reused by a replacement in its grace: the mark is cleared', async () => {
    const eni = region.createEni({ tags: { [CNI]: DEAD } });
    const policy: PolicyInput = { minAge: '0' };
    expect(verdicts(await run(policy))).toEqual({ [eni]: 'wait in-grace none' });
    const replacement = region.run();
    region.attachEni(eni, replacement);
    world.advance(20 * MINUTE);
    await run(policy);
    region.detach(eni);
    world.advance(20 * MINUTE);
    expect(verdicts(await run(policy))).toEqual({ [eni]: 'wait in-grace none' });
    expect(deletes()).toEqual([]);
  });
});
