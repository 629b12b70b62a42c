import { azure } from '../../shared/azure/registry.ts';
import { sweep } from '../../shared/core/engine.ts';
import { startAzureSimulator } from '../../simulator/azure/server.ts';
import type { Subscription } from '../../simulator/azure/subscription.ts';
import { passingClock } from '../../simulator/world/passing-clock.ts';
import { World } from '../../simulator/world/world.ts';
import { engineOn, type Stage } from './stage.ts';

const MINUTE_MS = 60_000;
const GROUP = 'shoot--demo';

/** A resource group that cannot be deleted, since the VMs of a dead cluster left their NICs and disks in it. */
export async function azureAct(stage: Stage): Promise<void> {
  stage.act('Azure: a resource group that cannot be deleted');
  const world = new World();
  const simulator = await startAzureSimulator({ world });
  try {
    await play(stage, world, simulator.subscription(), simulator.url);
  } finally {
    await simulator.close();
  }
}

async function play(stage: Stage, world: World, subscription: Subscription, url: string): Promise<void> {
  const clock = passingClock(world);
  const engine = { ...engineOn(world, azure({ clock, endpoint: url })), clock };
  const request = { subscriptions: [subscription.id], resourceGroup: GROUP };
  const sweepGroup = async () => {
    const call = { mode: 'enforce' as const, signal: new AbortController().signal };
    const { report } = await sweep(engine, 'sweep', request, call);
    stage.report(report);
    return report;
  };
  const dead = ['shoot--demo-worker-1', 'shoot--demo-worker-2'].map((name) =>
    subscription.createVm(name, { group: GROUP }),
  );
  const living = subscription.createVm('shoot--demo-worker-3', { group: GROUP });
  world.advance(60 * MINUTE_MS);

  stage.scene('Two VMs are deleted without their NICs and disks, while the controller is off. A third one lives.');
  for (const { vm } of dead) subscription.deleteVm(vm);
  const leftovers = dead.flatMap(({ nic, disks }) => [nic, ...disks]);

  stage.scene(`gleaner sweep --cloud azure --resource-group ${GROUP} --mode enforce: the first sighting`);
  const first = await sweepGroup();
  stage.check(
    'nothing is deleted at first sight',
    first.counts.deleted === 0 && first.counts.wait === leftovers.length,
  );

  stage.scene(
    '31 minutes later. Somebody tried to make one of the VMs again and failed: Azure reserves its NIC for 180 seconds.',
  );
  world.advance(31 * MINUTE_MS);
  subscription.reserve(dead[0]?.nic ?? '', dead[0]?.vm ?? '');
  const second = await sweepGroup();
  const { deleted, deferred } = second.counts;
  stage.check(
    'the reserved NIC is left for later, the rest is deleted',
    deleted === leftovers.length - 1 && deferred === 1,
  );

  stage.scene('200 seconds later, as its error called for');
  world.advance(200_000);
  const third = await sweepGroup();
  stage.check('the NIC is deleted too', third.counts.deleted === 1);
  stage.check(
    'everything of the living VM is there',
    [living.nic, ...living.disks].every((id) => subscription.get(id)),
  );

  stage.scene('The last VM goes the usual way, with its NIC and disks, and then the resource group.');
  subscription.deleteVm(living.vm);
  for (const id of [living.nic, ...living.disks]) subscription.remove(id);
  const group = `${url}${subscription.groupId(GROUP)}?api-version=2025-04-01`;
  await fetch(group, { method: 'DELETE' });
  world.advance(MINUTE_MS);
  stage.check('nothing blocks the deletion of the resource group any more', (await fetch(group)).status === 404);
}
