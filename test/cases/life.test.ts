import { it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { azure } from '../../shared/azure/registry.ts';
import type { Cloud } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { startAwsSimulator } from '../../simulator/aws/server.ts';
import { startAzureSimulator } from '../../simulator/azure/server.ts';
import { passingClock } from '../../simulator/world/passing-clock.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';
import { MINUTE, testEngine } from '../support/run.ts';
import { type Estate, live, POLICY } from './life.ts';

function engineOf(cloud: Cloud, world: World): Pick<Estate, 'world' | 'engine'> {
  const clock = passingClock(world);
  return { world, engine: { ...testEngine(cloud as never, new MemoryLedger(clock), POLICY), cloud, clock } };
}

async function onAws(): Promise<Estate> {
  const world = new World();
  const simulator = await startAwsSimulator({ world });
  Object.assign(process.env, awsEnvironment(simulator.url));
  const region = simulator.region();
  region.busyMs = 0;
  const cloud = aws({ region: region.name });
  const events: ReturnType<Cloud['parseEvent']>[number][] = [];
  simulator.events.listen((event) => events.push(...cloud.parseEvent(event)));
  const tagsOf = (id: string) => region.volumes.get(id)?.Tags ?? region.enis.get(id)?.TagSet ?? [];
  return {
    ...engineOf(cloud, world),
    close: () => simulator.close(),
    arrived: () => events.splice(0),
    scope: {},
    part: { cluster: 'shoot' },
    reads: ['DescribeVolumes', 'DescribeNetworkInterfaces', 'DescribeInstances'],
    deletes: ['DeleteVolume', 'DeleteNetworkInterface'],
    lagMs: 30_000,
    tellsDetachTime: false,
    boot: (name) => {
      const cluster = { 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' };
      const tags = { Name: name, ...cluster };
      const id = region.run({ name, tags: cluster, volumes: [{ tags }, { tags, deleteOnTermination: true }] });
      const eni = region.createEni({ tags: { ...tags, 'node.k8s.amazonaws.com/instance_id': id } });
      region.attachEni(eni, id);
      return { id, leaves: [region.instances.get(id)?.BlockDeviceMappings?.[0]?.Ebs?.VolumeId ?? '', eni] };
    },
    kill: (id) => region.terminate(id),
    stop: (id) => region.stop(id),
    attach: (disk, vm) => region.attachVolume(disk, vm),
    detach: (disk, vm) => region.detach(disk, vm),
    isDisk: (id) => id.startsWith('vol-'),
    isFree: (id) => (region.volumes.get(id)?.State ?? region.enis.get(id)?.Status) === 'available',
    isThere: (id) => (region.volumes.get(id) ?? region.enis.get(id)) !== undefined,
    keep: (id) =>
      region.tag(id, {
        ...Object.fromEntries(tagsOf(id).map(({ Key = '', Value = '' }) => [Key, Value])),
        'gleaner-keep': '',
      }),
    setLag: (on) => {
      region.lagMs = on ? 30_000 : 0;
    },
  };
}

async function onAzure(): Promise<Estate> {
  const world = new World();
  const simulator = await startAzureSimulator({ world });
  const sub = simulator.subscription();
  sub.casing = 'mixed';
  const cloud = azure({ clock: passingClock(world), endpoint: simulator.url });
  const events: ReturnType<Cloud['parseEvent']>[number][] = [];
  simulator.events.listen((delivery) => events.push(...cloud.parseEvent(delivery)));
  const subscriptions = [sub.id];
  const bodyOf = (id: string) => (id.includes('/disks/') ? sub.disk(id) : sub.nic(id));
  return {
    ...engineOf(cloud, world),
    close: () => simulator.close(),
    arrived: () => events.splice(0),
    scope: { subscriptions },
    part: { subscriptions, resourceGroup: 'Shoot--One' },
    reads: [
      'Microsoft.Compute/disks/read',
      'Microsoft.Network/networkInterfaces/read',
      'Microsoft.Compute/virtualMachines/read',
      'Microsoft.ResourceGraph/resources/read',
    ],
    deletes: ['Microsoft.Compute/disks/delete', 'Microsoft.Network/networkInterfaces/delete'],
    // ARM's reads do not lag; Resource Graph's do, and nothing rests on them.
    lagMs: 0,
    tellsDetachTime: true,
    boot: (name) => {
      const { vm, nic, disks } = sub.createVm(name);
      return { id: vm, leaves: [nic, ...disks] };
    },
    kill: (id) => sub.deleteVm(id),
    stop: (id) => sub.deallocateVm(id),
    attach: (disk, vm) => sub.attachDisk(disk, vm),
    detach: (disk) => sub.detachDisk(disk),
    isDisk: (id) => id.includes('/disks/'),
    isFree: (id) =>
      id.includes('/disks/')
        ? sub.disk(id).properties.diskState === 'Unattached'
        : sub.nic(id).properties.virtualMachine === undefined,
    isThere: (id) => sub.get(id) !== undefined,
    keep: (id) => sub.tag(id, { ...bodyOf(id).tags, 'Gleaner-Keep': '' }),
    setLag: (on) => {
      sub.graphLagMs = on ? 15 * MINUTE : 0;
    },
  };
}

it.each([
  ['AWS', onAws],
  ['Azure', onAzure],
])('on %s deletes nothing wrongly and leaves nothing, whatever happens to VMs, events and answers', async (_, open) => {
  await live(open);
});
