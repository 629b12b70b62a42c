import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  CreateSnapshotCommand,
  CreateTagsCommand,
  CreateVolumeCommand,
  DeleteNetworkInterfaceCommand,
  DeleteVolumeCommand,
  DescribeInstancesCommand,
  DescribeNetworkInterfacesCommand,
  DescribeRegionsCommand,
  DescribeSnapshotsCommand,
  DescribeVolumesCommand,
  EC2Client,
  ListVolumesInRecycleBinCommand,
  paginateDescribeVolumes,
  RestoreVolumeFromRecycleBinCommand,
} from '@aws-sdk/client-ec2';
import { XMLParser } from 'fast-xml-parser';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
let simulator: AwsSimulator;
let ec2: EC2Client;
const client = (region: string, maxAttempts = 1) =>
  new EC2Client({ region, endpoint: simulator.url, credentials, maxAttempts });
const filters = (...pairs: [string, string[]][]) => pairs.map(([Name, Values]) => ({ Name, Values }));

beforeEach(async () => {
  simulator = await startAwsSimulator({ world: new World() });
  ec2 = client('us-east-1');
});
afterEach(() => simulator.close());

describe('EC2 simulator', () => {
  it('gives pages with tokens, refuses a broken one, a wrong size, and a size beside ids', async () => {
    const region = simulator.region();
    const ids = Array.from({ length: 12 }, () => region.createVolume());
    const pages = await Array.fromAsync(paginateDescribeVolumes({ client: ec2, pageSize: 5 }, {}));
    expect(pages.map(({ Volumes }) => Volumes?.length)).toEqual([5, 5, 2]);
    expect(pages.flatMap(({ Volumes = [] }) => Volumes.map(({ VolumeId }) => VolumeId))).toEqual(ids);
    await expect(ec2.send(new DescribeVolumesCommand({ NextToken: 'bogus' }))).rejects.toMatchObject({
      name: 'InvalidParameterValue',
    });
    await expect(ec2.send(new DescribeVolumesCommand({ MaxResults: 3 }))).rejects.toMatchObject({
      name: 'InvalidParameterValue',
    });
    const both = new DescribeVolumesCommand({ MaxResults: 5, VolumeIds: ids.slice(0, 1) });
    await expect(ec2.send(both)).rejects.toMatchObject({ name: 'InvalidParameterCombination' });
  });

  it('ANDs filters, ORs values, knows wildcards, and refuses what it does not know', async () => {
    const region = simulator.region();
    const a = region.createVolume({ tags: { 'kubernetes.io/cluster/x': '1' } });
    const b = region.createVolume({ tags: { other: '1' } });
    region.createVolume();
    const find = async (...pairs: [string, string[]][]) => {
      const { Volumes = [] } = await ec2.send(new DescribeVolumesCommand({ Filters: filters(...pairs) }));
      return Volumes.map(({ VolumeId }) => VolumeId);
    };
    expect(await find(['status', ['available']], ['tag-key', ['kubernetes.io/cluster/*']])).toEqual([a]);
    expect(await find(['tag-key', ['kubernetes.io/cluster/*', 'other']])).toEqual([a, b]);
    expect(await find(['tag-key', ['*']])).toEqual([a, b]);
    expect(await find(['tag:other', ['1']])).toEqual([b]);
    expect(await find(['volume-id', [a, 'vol-00000000000000000']])).toEqual([a]);
    await expect(find(['colour', ['blue']])).rejects.toMatchObject({ name: 'InvalidParameterValue' });
    const many = Array.from({ length: 201 }, (_, index) => `vol-${index}`);
    await expect(find(['volume-id', many])).rejects.toMatchObject({ name: 'FilterLimitExceeded' });
    await expect(
      ec2.send(new DescribeVolumesCommand({ VolumeIds: [a, 'vol-00000000000000000'] })),
    ).rejects.toMatchObject({
      name: 'InvalidVolume.NotFound',
    });
  });

  it('terminates: what goes with the instance goes, the rest is left, and the instance is forgotten after an hour', async () => {
    const region = simulator.region();
    const id = region.run({ name: 'm', volumes: [{ deleteOnTermination: true }, {}], enis: [{}] });
    const look = async () =>
      (await ec2.send(new DescribeInstancesCommand({ Filters: filters(['instance-id', [id]]) }))).Reservations ?? [];
    expect((await look())[0]?.Instances?.[0]?.BlockDeviceMappings).toHaveLength(2);
    region.terminate(id, { shuttingDownMs: 20_000 });
    expect((await look())[0]?.Instances?.[0]?.State?.Name).toBe('shutting-down');
    simulator.world.advance(20_000);
    expect((await look())[0]?.Instances?.[0]).toMatchObject({
      State: { Name: 'terminated' },
      Tags: [{ Key: 'Name', Value: 'm' }],
    });
    expect((await ec2.send(new DescribeVolumesCommand({}))).Volumes).toMatchObject([
      { State: 'available', Attachments: [] },
    ]);
    simulator.world.advance(3_600_000);
    expect(await look()).toEqual([]);
  });

  it('says that an ENI is in use for a while after it was freed', async () => {
    const region = simulator.region();
    const id = region.run({ enis: [{}] });
    const eni = [...region.enis.all()][0]?.NetworkInterfaceId ?? '';
    const remove = () => ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId: eni }));
    await expect(remove()).rejects.toMatchObject({
      name: 'InvalidParameterValue',
      message: expect.stringContaining('is currently in use'),
    });
    region.terminate(id);
    const { NetworkInterfaces } = await ec2.send(new DescribeNetworkInterfacesCommand({}));
    expect(NetworkInterfaces).toMatchObject([{ Status: 'available' }]);
    await expect(remove()).rejects.toMatchObject({ name: 'InvalidParameterValue' });
    simulator.world.advance(30_000);
    await remove();
    await expect(remove()).rejects.toMatchObject({ name: 'InvalidNetworkInterfaceID.NotFound' });
  });

  it('shows a change to readers only after the lag, and to writers at once', async () => {
    const region = simulator.region();
    const id = region.createVolume();
    region.lagMs = 10_000;
    await ec2.send(new DeleteVolumeCommand({ VolumeId: id }));
    expect((await ec2.send(new DescribeVolumesCommand({}))).Volumes).toHaveLength(1);
    await expect(ec2.send(new DeleteVolumeCommand({ VolumeId: id }))).rejects.toMatchObject({
      name: 'InvalidVolume.NotFound',
    });
    simulator.world.advance(10_000);
    expect((await ec2.send(new DescribeVolumesCommand({}))).Volumes).toEqual([]);
  });

  it('throttles by its buckets, which refill with the clock', async () => {
    simulator.world.throttle('DescribeVolumes', 3, 1);
    const call = () => ec2.send(new DescribeVolumesCommand({}));
    for (let index = 0; index < 3; index += 1) await call();
    await expect(call()).rejects.toMatchObject({ name: 'RequestLimitExceeded' });
    simulator.world.advance(1000);
    await call();
  });

  it('makes faults when told, and the SDK sees each as it would at EC2', async () => {
    const { faults } = simulator.world;
    const call = () => ec2.send(new DescribeVolumesCommand({}));
    faults.inject(
      'DescribeVolumes',
      { kind: 'error', status: 500, code: 'InternalError', message: 'oops' },
      { times: 1 },
    );
    await expect(call()).rejects.toMatchObject({ name: 'InternalError' });
    faults.inject('DescribeVolumes', { kind: 'drop' }, { times: 1 });
    await expect(call()).rejects.toThrow();
    faults.inject('DescribeVolumes', { kind: 'cut' }, { times: 1 });
    await expect(call()).rejects.toThrow();
    faults.inject('DescribeVolumes', { kind: 'partial' }, { times: 1 });
    expect((await call()).Volumes).toBeUndefined();
    expect((await call()).Volumes).toEqual([]);
  });

  it('refuses a region that is not enabled, and what IAM denies', async () => {
    const { Regions = [] } = await ec2.send(new DescribeRegionsCommand({ AllRegions: true }));
    expect(Regions.find(({ RegionName }) => RegionName === 'af-south-1')?.OptInStatus).toBe('not-opted-in');
    await expect(client('af-south-1').send(new DescribeVolumesCommand({}))).rejects.toMatchObject({
      name: 'AuthFailure',
    });
    simulator.denied.add('DescribeVolumes');
    await expect(ec2.send(new DescribeVolumesCommand({}))).rejects.toMatchObject({ name: 'UnauthorizedOperation' });
  });

  it('snapshots, bins and restores', async () => {
    const region = simulator.region();
    const VolumeId = region.createVolume({ tags: { a: 'b' } });
    const { SnapshotId = '' } = await ec2.send(new CreateSnapshotCommand({ VolumeId }));
    const state = async () =>
      (await ec2.send(new DescribeSnapshotsCommand({ OwnerIds: ['self'] }))).Snapshots?.[0]?.State;
    expect(await state()).toBe('pending');
    const early = new CreateVolumeCommand({ SnapshotId, AvailabilityZone: 'us-east-1a' });
    await expect(ec2.send(early)).rejects.toMatchObject({ name: 'IncorrectState' });
    simulator.world.advance(60_000);
    expect(await state()).toBe('completed');
    expect((await ec2.send(early)).VolumeId).toMatch(/^vol-/);
    region.recycleBin = true;
    await ec2.send(new DeleteVolumeCommand({ VolumeId }));
    expect((await ec2.send(new ListVolumesInRecycleBinCommand({}))).Volumes).toMatchObject([{ VolumeId }]);
    await ec2.send(new RestoreVolumeFromRecycleBinCommand({ VolumeId }));
    await ec2.send(new CreateTagsCommand({ Resources: [VolumeId], Tags: [{ Key: 'c', Value: 'd' }] }));
    const { Volumes } = await ec2.send(new DescribeVolumesCommand({ VolumeIds: [VolumeId] }));
    expect(Volumes?.[0]).toMatchObject({ State: 'available', Tags: [{ Key: 'a' }, { Key: 'c' }] });
  });

  it('delivers events late, twice, or never, when told', () => {
    const region = simulator.region();
    const seen: string[] = [];
    simulator.events.listen(({ detail }) => seen.push(detail.state));
    const { faults } = simulator.events;
    faults.lose = ({ state }) => state === 'running';
    faults.delaysMs = ({ state }) => (state === 'terminated' ? [1000, 2000] : [0]);
    region.terminate(region.run());
    expect(seen).toEqual(['shutting-down']);
    simulator.world.advance(1000);
    expect(seen).toEqual(['shutting-down', 'terminated']);
    simulator.world.advance(1000);
    expect(seen).toEqual(['shutting-down', 'terminated', 'terminated']);
  });
});

interface ModelShape {
  readonly type: string;
  readonly members?: Record<string, { shape: string; locationName?: string }>;
  readonly member?: { shape: string; locationName?: string };
}
interface Model {
  readonly operations: Record<string, { output?: { shape: string } }>;
  readonly shapes: Record<string, ModelShape>;
}

const MODEL = resolve(
  process.env.MODELS_DIR ?? resolve(import.meta.dirname, '../../../shared/models'),
  'aws/ec2-2016-11-15.json',
);
if (!existsSync(MODEL)) console.warn(`skipped: no EC2 model at MODELS_DIR (${MODEL})`);

describe.skipIf(!existsSync(MODEL))('its answers, held against the API model', () => {
  const model = existsSync(MODEL) ? (JSON.parse(readFileSync(MODEL, 'utf8')) as Model) : undefined;

  /** Elements of an answer that the model does not know. */
  function strange(value: unknown, shapeName: string, path: string): string[] {
    const shape = model?.shapes[shapeName];
    if (!shape) return [`${path}: no shape ${shapeName}`];
    if (shape.type === 'list') {
      const items = [(value as { item?: unknown }).item ?? []].flat();
      return items.flatMap((item, index) => strange(item, shape.member?.shape ?? '', `${path}[${index}]`));
    }
    if (shape.type !== 'structure') return typeof value === 'object' ? [`${path}: is no scalar`] : [];
    const members = new Map(
      Object.entries(shape.members ?? {}).map(([name, member]) => [member.locationName ?? name, member.shape]),
    );
    return Object.entries(value === '' ? {} : (value as object)).flatMap(([name, one]) => {
      const known = members.get(name);
      return known === undefined ? [`${path}.${name}`] : one === '' ? [] : strange(one, known, `${path}.${name}`);
    });
  }

  it('has no element that EC2 does not have', async () => {
    const region = simulator.region();
    const id = region.run({
      name: 'm',
      tags: { t: '1' },
      volumes: [{ tags: { a: 'b' } }, {}],
      enis: [{ tags: { a: 'b' }, description: 'd' }],
    });
    const managed = {
      Operator: { Managed: true, Principal: 'eks' },
      RequesterId: 'amazon-eks',
      RequesterManaged: true,
    };
    region.createEni({ over: { ...managed, InterfaceType: 'lambda' } });
    region.recycleBin = true;
    const VolumeId = region.createVolume({ tags: { a: 'b' } });
    await ec2.send(new DescribeRegionsCommand({}));
    await ec2.send(new DescribeInstancesCommand({}));
    region.terminate(id);
    await ec2.send(new DescribeVolumesCommand({}));
    await ec2.send(new DescribeNetworkInterfacesCommand({}));
    await ec2.send(new CreateSnapshotCommand({ VolumeId }));
    await ec2.send(new DescribeSnapshotsCommand({}));
    await ec2.send(new CreateVolumeCommand({ AvailabilityZone: 'us-east-1a', Size: 1 }));
    await ec2.send(new DeleteVolumeCommand({ VolumeId }));
    await ec2.send(new ListVolumesInRecycleBinCommand({}));
    await ec2.send(new RestoreVolumeFromRecycleBinCommand({ VolumeId }));
    const parser = new XMLParser({ ignoreAttributes: true, parseTagValue: false });
    const actions = new Set<string>();
    for (const { action, body } of simulator.answers) {
      actions.add(action);
      const {
        requestId,
        return: result,
        ...answer
      } = parser.parse(body)[`${action}Response`] as Record<string, unknown>;
      expect(requestId).toBeDefined();
      const output = model?.operations[action]?.output?.shape;
      // Operations whose output the model leaves empty answer `return` alone.
      if (output === undefined) expect(result).toBe('true');
      else expect(strange(answer, output, action)).toEqual([]);
    }
    expect(actions.size).toBe(10);
  });
});
