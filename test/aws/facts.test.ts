import type { NetworkInterface, Volume } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resource } from '../../shared/core/model.ts';
import type { CloudScope } from '../../shared/core/ports.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { item, key, scopeOn, signal, typeOf } from './scripted.ts';

let simulator: AwsSimulator;
let scope: CloudScope;
beforeAll(async () => {
  simulator = await startAwsSimulator();
  scope = await scopeOn(simulator.url);
});
afterAll(() => simulator.close());

async function read(kind: 'disk' | 'nic', id: string): Promise<Resource> {
  const result = (await typeOf(scope, kind).get([item(id)], signal())).get(key(id));
  if (result?.status !== 'found') throw new Error(`${id}: ${result?.status}`);
  return result.resource;
}
const volume = (over: Partial<Volume>, tags = {}) => read('disk', simulator.region().createVolume({ tags }, over));
const eni = (over: Partial<NetworkInterface>, tags = {}, description = '') =>
  read('nic', simulator.region().createEni({ tags, description, over }));

const attachment = { AttachmentId: 'eni-attach-1', DeviceIndex: 1 };

describe('an EBS volume', () => {
  it.each([
    ['available', 'free'],
    ['creating', 'changing'],
    ['deleting', 'deleting'],
    ['deleted', 'deleting'],
    ['in-use', 'attached'],
    ['error', 'attached'],
    ['a state of tomorrow', 'attached'],
  ])('that is %s is %s', async (State, state) => {
    expect(await volume({ State: State as Volume['State'] })).toMatchObject({ state, nativeState: State });
  });

  it.each<[string, NonNullable<Volume['Attachments']>[number], string]>([
    ['an instance', { InstanceId: 'i-0123456789abcdef0' }, 'i-0123456789abcdef0'],
    ['a resource of a service', { AssociatedResource: 'arn:aws:ecs:x' }, 'arn:aws:ecs:x'],
    ['a service', { InstanceOwningService: 'fargate' }, 'fargate'],
    ['what is not told', {}, 'unknown'],
  ])('attached to %s is not free, whatever its state says', async (_, one, attachedTo) => {
    const found = await volume({ State: 'available', Attachments: [{ ...one, State: 'attached' }] });
    expect(found).toMatchObject({ state: 'attached', attachedTo: [attachedTo] });
  });

  it.each<[string, Partial<Volume>, Record<string, string>]>([
    ['multi-attach', { MultiAttachEnabled: true }, {}],
    ['service-managed', { Operator: { Managed: true, Principal: 'eks.amazonaws.com' } }, {}],
    ['persistent-volume', {}, { KubernetesCluster: 'c', Name: 'c-dynamic-pvc-1' }],
  ])('is held: %s', async (code, over, tags) => {
    const found = await volume(over, tags);
    expect(found.holds.map((hold) => hold.code)).toEqual([code]);
    expect(found.state).toBe('free');
  });

  it('is not held by a name alone', async () => {
    expect((await volume({}, { Name: 'c-dynamic-pvc-1' })).holds).toEqual([]);
    expect((await volume({}, { KubernetesCluster: 'c', Name: 'node' })).holds).toEqual([]);
  });

  it('has its age, its size, its price, and what it takes to make it again', async () => {
    const CreateTime = new Date('2026-11-01T10:00:00Z');
    const found = await volume({
      CreateTime,
      Size: 100,
      VolumeType: 'gp3',
      Encrypted: true,
      KmsKeyId: 'arn:aws:kms:k',
    });
    expect(found).toMatchObject({ createdAt: CreateTime, sizeGiB: 100, monthlyCostUsd: 8 });
    expect(found.restore).toEqual({
      availabilityZone: 'us-east-1a',
      volumeType: 'gp3',
      sizeGiB: 100,
      iops: 3000,
      throughput: 125,
      encrypted: true,
      kmsKeyId: 'arn:aws:kms:k',
    });
    expect((await volume({ VolumeType: 'new9' as 'gp3' })).monthlyCostUsd).toBeUndefined();
  });
});

describe('an ENI', () => {
  it.each([
    ['available', 'free'],
    ['pending', 'changing'],
    ['attaching', 'changing'],
    ['associated', 'changing'],
    ['detaching', 'changing'],
    ['in-use', 'attached'],
    ['a status of tomorrow', 'attached'],
  ])('that is %s is %s', async (Status, state) => {
    expect(await eni({ Status: Status as NetworkInterface['Status'] })).toMatchObject({ state, nativeState: Status });
  });

  it('with an attachment is not free, whatever its status says', async () => {
    const found = await eni({ Status: 'available', Attachment: attachment });
    expect(found).toMatchObject({ state: 'attached', attachedTo: ['eni-attach-1'] });
  });

  const HELD: [string, Partial<NetworkInterface>, Record<string, string>?, string?][] = [
    ['requester-managed', { RequesterManaged: true, RequesterId: 'amazon-elasticache' }],
    ['service-managed', { Operator: { Managed: true, Principal: 'eks.amazonaws.com' } }],
    // As EC2 says it; the SDK's type has it otherwise.
    ['interface-type', { InterfaceType: 'nat_gateway' as 'natGateway' }],
    ['interface-type', { InterfaceType: 'lambda' }],
    ['interface-type', { InterfaceType: 'network_load_balancer' }],
    ['interface-type', { InterfaceType: 'efa' }],
    ['load-balancer', { Attachment: { ...attachment, InstanceOwnerId: 'amazon-elb' } }],
    ['load-balancer', {}, {}, 'ELB app/a/1'],
    ['service-attachment', { Attachment: { AttachmentId: 'ela-attach-1' } }],
    ['no-manage', {}, { 'node.k8s.amazonaws.com/no_manage': 'true' }],
    ['no-manage', {}, { 'node.k8s.amazonaws.com/no_manage': '' }],
  ];
  it.each(HELD.map(([code, over, tags, description]) => ({ code, over, tags, description })))(
    'is held: $code',
    async ({ code, over, tags, description }) => {
      expect((await eni(over, tags, description)).holds.map((hold) => hold.code)).toEqual([code]);
    },
  );

  it('has no age but the one that the CNI wrote down', async () => {
    const at = 'node.k8s.amazonaws.com/createdAt';
    expect((await eni({})).createdAt).toBeUndefined();
    expect((await eni({}, { [at]: '2026-11-01T10:00:00Z' })).createdAt).toEqual(new Date('2026-11-01T10:00:00Z'));
    expect((await eni({}, { [at]: 'yesterday' })).createdAt?.getTime()).toBeNaN();
  });
});

describe('disks before and after their deletion', () => {
  const token = 'gleaner-token';

  it('one snapshot under one token, completed when EC2 says so', async () => {
    const disk = await volume({}, { Name: 'm', 'aws:createdBy': 'x' });
    const type = typeOf(scope, 'disk');
    const first = await type.snapshot?.(disk, token, signal());
    expect(first).toMatchObject({ state: 'pending' });
    expect(await type.snapshot?.(disk, token, signal())).toEqual(first);
    simulator.world.advance(120_000);
    expect(await type.snapshot?.(disk, token, signal())).toEqual({ id: first?.id, state: 'completed' });
    expect(await type.snapshot?.(disk, 'another', signal())).not.toMatchObject({ id: first?.id });
    const made = simulator.region().snapshots.get(first?.id ?? '');
    expect(made?.Tags).toEqual([
      { Key: 'Name', Value: 'm' },
      { Key: 'gleaner-snapshot-token', Value: token },
    ]);
  });

  it('too many snapshots of one volume at once: later', async () => {
    const disk = await volume({});
    const message = 'The maximum per volume CreateSnapshot request rate has been exceeded.';
    const fault = { kind: 'error', status: 400, code: 'SnapshotCreationPerVolumeRateExceeded', message } as const;
    simulator.world.faults.inject('CreateSnapshot', fault);
    await expect(typeOf(scope, 'disk').snapshot?.(disk, token, signal())).rejects.toMatchObject({ code: 'throttled' });
    simulator.world.faults.clear();
  });

  it('comes back from its snapshot with its tags and shape, also where the Recycle Bin cannot be read', async () => {
    const type = typeOf(scope, 'disk');
    const disk = await volume({ Size: 30 }, { Name: 'm', 'kubernetes.io/cluster/shoot': '1' });
    const { id: snapshotId } = (await type.snapshot?.(disk, token, signal())) ?? {};
    simulator.world.advance(120_000);
    await type.delete(disk, signal());
    simulator.denied.add('ListVolumesInRecycleBin');
    const source = { id: disk.id, name: disk.name, tags: disk.tags, restore: disk.restore };
    await expect(type.restore?.(source, signal())).rejects.toMatchObject({ code: 'denied' });
    const restored = await type.restore?.({ ...source, snapshotId }, signal());
    simulator.denied.clear();
    expect(restored?.from).toBe('snapshot');
    expect(await read('disk', restored?.id ?? '')).toMatchObject({ tags: disk.tags, sizeGiB: 30, state: 'free' });
  });

  it('comes back from the Recycle Bin as itself; from nothing it does not', async () => {
    const type = typeOf(scope, 'disk');
    simulator.region().recycleBin = true;
    const disk = await volume({}, { Name: 'm' });
    await type.delete(disk, signal());
    const source = { id: disk.id, name: disk.name, tags: disk.tags };
    expect(await type.restore?.(source, signal())).toEqual({ id: disk.id, from: 'recycle-bin' });
    expect(await read('disk', disk.id)).toMatchObject({ state: 'free', tags: { Name: 'm' } });
    simulator.region().recycleBin = false;
    await type.delete(disk, signal());
    await expect(type.restore?.(source, signal())).rejects.toThrow(/^id: .* cannot be restored/);
  });
});
