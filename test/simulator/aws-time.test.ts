import {
  CreateSnapshotCommand,
  CreateTagsCommand,
  CreateVolumeCommand,
  DeleteNetworkInterfaceCommand,
  DeleteVolumeCommand,
  DescribeInstancesCommand,
  DescribeNetworkInterfacesCommand,
  DescribeRegionsCommand,
  DescribeVolumesCommand,
  EC2Client,
  ListVolumesInRecycleBinCommand,
  RestoreVolumeFromRecycleBinCommand,
} from '@aws-sdk/client-ec2';
import { ListGroupResourcesCommand, ResourceGroupsClient } from '@aws-sdk/client-resource-groups';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AwsSimulator, type AwsSimulatorOptions, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
let simulator: AwsSimulator;
let ec2: EC2Client;

async function start(options: AwsSimulatorOptions = {}): Promise<void> {
  simulator = await startAwsSimulator({ world: new World(), ...options });
  ec2 = new EC2Client({ region: 'us-east-1', endpoint: simulator.url, credentials, maxAttempts: 1 });
}
const volume = async (VolumeId: string) =>
  (await ec2.send(new DescribeVolumesCommand({ VolumeIds: [VolumeId] }))).Volumes?.[0];
const eni = async (id: string) =>
  (await ec2.send(new DescribeNetworkInterfacesCommand({ NetworkInterfaceIds: [id] }))).NetworkInterfaces?.[0];
const instance = async (id: string) =>
  (await ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }))).Reservations?.[0]?.Instances?.[0];

beforeEach(() => start());
afterEach(() => simulator.close());

describe('EC2 simulator: what takes time', () => {
  it('attaches and detaches by steps, and refuses a delete at each', async () => {
    const region = simulator.region();
    region.attachMs = 5000;
    region.detachMs = 5000;
    const id = region.run();
    const VolumeId = region.createVolume();
    const NetworkInterfaceId = region.createEni();
    region.attachVolume(VolumeId, id);
    region.attachEni(NetworkInterfaceId, id);
    expect(await volume(VolumeId)).toMatchObject({ State: 'in-use', Attachments: [{ State: 'attaching' }] });
    expect(await eni(NetworkInterfaceId)).toMatchObject({ Status: 'attaching', Attachment: { Status: 'attaching' } });
    simulator.world.advance(5000);
    expect(await volume(VolumeId)).toMatchObject({ Attachments: [{ State: 'attached' }] });
    expect(await eni(NetworkInterfaceId)).toMatchObject({ Status: 'in-use', Attachment: { Status: 'attached' } });
    region.detach(VolumeId);
    region.detach(NetworkInterfaceId);
    expect(await volume(VolumeId)).toMatchObject({ State: 'in-use', Attachments: [{ State: 'detaching' }] });
    await expect(ec2.send(new DeleteVolumeCommand({ VolumeId }))).rejects.toMatchObject({ name: 'VolumeInUse' });
    await expect(ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId }))).rejects.toMatchObject({
      name: 'InvalidParameterValue',
    });
    simulator.world.advance(5000);
    expect(await volume(VolumeId)).toMatchObject({ State: 'available', Attachments: [] });
    expect(await eni(NetworkInterfaceId)).toMatchObject({ Status: 'available' });
    await expect(ec2.send(new DeleteVolumeCommand({ VolumeId }))).rejects.toMatchObject({ name: 'VolumeInUse' });
    simulator.world.advance(30_000);
    await ec2.send(new DeleteVolumeCommand({ VolumeId }));
  });

  it('starts, stops and starts again by steps', async () => {
    const region = simulator.region();
    const id = region.run({ pendingMs: 5000 });
    const states = [(await instance(id))?.State?.Name];
    const later = async (ms: number) => {
      simulator.world.advance(ms);
      states.push((await instance(id))?.State?.Name);
    };
    await later(5000);
    region.stop(id, { stoppingMs: 5000 });
    await later(0);
    await later(5000);
    region.start(id, { pendingMs: 5000 });
    await later(0);
    await later(5000);
    expect(states).toEqual(['pending', 'running', 'stopping', 'stopped', 'pending', 'running']);
  });

  it('leaves a volume that two instances hold to the one that lives, whatever the other took along', async () => {
    const region = simulator.region();
    const [first, second] = [region.run(), region.run()];
    const id = region.createVolume({}, { MultiAttachEnabled: true });
    region.attachVolume(id, first, true);
    region.attachVolume(id, second, true);
    region.terminate(first);
    expect(await volume(id)).toMatchObject({ State: 'in-use', Attachments: [{ InstanceId: second }] });
    region.terminate(second);
    await expect(volume(id)).rejects.toMatchObject({ name: 'InvalidVolume.NotFound' });
  });

  it('says for a while that a volume is being deleted, and keeps what is binned until its time', async () => {
    const region = simulator.region();
    region.deletingMs = 5000;
    region.recycleBin = true;
    region.binMs = 60_000;
    const VolumeId = region.createVolume({ tags: { a: 'b' } });
    await ec2.send(new DeleteVolumeCommand({ VolumeId }));
    expect((await volume(VolumeId))?.State).toBe('deleting');
    await expect(ec2.send(new DeleteVolumeCommand({ VolumeId }))).rejects.toMatchObject({ name: 'IncorrectState' });
    simulator.world.advance(5000);
    const binned = async () => (await ec2.send(new ListVolumesInRecycleBinCommand({}))).Volumes;
    expect(await binned()).toMatchObject([{ VolumeId, RecycleBinExitTime: expect.any(Date) }]);
    simulator.world.advance(60_000);
    expect(await binned()).toEqual([]);
    await expect(ec2.send(new RestoreVolumeFromRecycleBinCommand({ VolumeId }))).rejects.toMatchObject({
      name: 'InvalidVolume.NotFound',
    });
  });
});

describe('EC2 simulator: what it refuses', () => {
  it('answers a region that is closed to the account in each of the three ways', async () => {
    for (const closedAs of ['AuthFailure', 'OptInRequired', 'UnrecognizedClientException'] as const) {
      await simulator.close();
      await start({ closedAs });
      const there = new EC2Client({ region: 'af-south-1', endpoint: simulator.url, credentials, maxAttempts: 1 });
      await expect(there.send(new DescribeVolumesCommand({}))).rejects.toMatchObject({ name: closedAs });
    }
  });

  it('deletes nothing that another service manages', async () => {
    const region = simulator.region();
    const Operator = { Managed: true, Principal: 'eks.amazonaws.com' };
    const VolumeId = region.createVolume({}, { Operator });
    const NetworkInterfaceId = region.createEni({ over: { Operator } });
    const refused = { name: 'OperationNotPermitted' };
    await expect(ec2.send(new DeleteVolumeCommand({ VolumeId }))).rejects.toMatchObject(refused);
    await expect(ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId }))).rejects.toMatchObject(refused);
  });

  it('a region that does not exist, a token of another action, and a parameter that it does not know', async () => {
    const region = simulator.region();
    for (let index = 0; index < 6; index += 1) region.createVolume();
    const named = await ec2.send(new DescribeRegionsCommand({ RegionNames: ['eu-west-1'] }));
    expect(named.Regions?.map(({ RegionName }) => RegionName)).toEqual(['eu-west-1']);
    const invalid = { name: 'InvalidParameterValue' };
    await expect(ec2.send(new DescribeRegionsCommand({ RegionNames: ['xx-1'] }))).rejects.toMatchObject(invalid);
    const { NextToken } = await ec2.send(new DescribeVolumesCommand({ MaxResults: 5 }));
    await expect(ec2.send(new DescribeNetworkInterfacesCommand({ NextToken }))).rejects.toMatchObject(invalid);
    await expect(ec2.send(new DescribeRegionsCommand({ Filters: [{ Name: 'endpoint' }] }))).rejects.toMatchObject({
      name: 'UnknownParameter',
    });
  });

  it('a second snapshot of a volume at once, and another volume under a token that was used', async () => {
    const region = simulator.region();
    const VolumeId = region.createVolume();
    await ec2.send(new CreateSnapshotCommand({ VolumeId }));
    await expect(ec2.send(new CreateSnapshotCommand({ VolumeId }))).rejects.toMatchObject({
      name: 'SnapshotCreationPerVolumeRateExceeded',
    });
    simulator.world.advance(15_000);
    await ec2.send(new CreateSnapshotCommand({ VolumeId }));
    const make = (Size: number) =>
      ec2.send(new CreateVolumeCommand({ AvailabilityZone: 'us-east-1a', Size, ClientToken: 'once' }));
    const made = await make(1);
    expect((await make(1)).VolumeId).toBe(made.VolumeId);
    await expect(make(2)).rejects.toMatchObject({ name: 'IdempotentParameterMismatch' });
    const elsewhere = new CreateVolumeCommand({ AvailabilityZone: 'eu-west-1a', Size: 1 });
    await expect(ec2.send(elsewhere)).rejects.toMatchObject({ name: 'InvalidZone.NotFound' });
  });

  it('tags of several resources of which one is missing or would have too many: none is tagged then', async () => {
    const region = simulator.region();
    const VolumeId = region.createVolume();
    const tag = (Resources: string[], count = 1) =>
      ec2.send(
        new CreateTagsCommand({
          Resources,
          Tags: Array.from({ length: count }, (_, index) => ({ Key: `k${index}`, Value: 'v' })),
        }),
      );
    await expect(tag([VolumeId, 'vol-00000000000000000'])).rejects.toMatchObject({ name: 'InvalidVolume.NotFound' });
    await expect(tag([VolumeId], 51)).rejects.toMatchObject({ name: 'TagLimitExceeded' });
    expect((await volume(VolumeId))?.Tags).toEqual([]);
    const { SnapshotId = '' } = await ec2.send(new CreateSnapshotCommand({ VolumeId }));
    await tag([VolumeId, SnapshotId]);
    expect((await volume(VolumeId))?.Tags).toEqual([{ Key: 'k0', Value: 'v' }]);
  });
});

describe('Resource Groups simulator', () => {
  const groups = () =>
    new ResourceGroupsClient({ region: 'us-east-1', endpoint: simulator.url, credentials, maxAttempts: 1 });

  it('gives pages of a group, and its errors in its own words', async () => {
    const region = simulator.region();
    const arns = Array.from({ length: 60 }, () => region.arn('volume', region.createVolume()));
    region.groups.set('team', { arns });
    const list = (NextToken?: string, Group = 'team') =>
      groups().send(new ListGroupResourcesCommand({ Group, ...(NextToken && { NextToken }) }));
    const first = await list();
    const second = await list(first.NextToken);
    expect([...(first.Resources ?? []), ...(second.Resources ?? [])].map((one) => one.Identifier?.ResourceArn)).toEqual(
      arns,
    );
    expect(second.NextToken).toBeUndefined();
    await expect(list('bogus')).rejects.toMatchObject({ name: 'BadRequestException' });
    await expect(list(undefined, 'none')).rejects.toMatchObject({ name: 'NotFoundException' });
    simulator.denied.add('ListGroupResources');
    await expect(list()).rejects.toMatchObject({ name: 'ForbiddenException' });
    simulator.denied.clear();
    simulator.world.throttle('ListGroupResources', 1, 1);
    await list();
    await expect(list()).rejects.toMatchObject({ name: 'TooManyRequestsException' });
    expect(simulator.world.requests.at(-1)).toMatchObject({ code: 'TooManyRequestsException' });
  });
});
