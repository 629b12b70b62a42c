import { aws } from '../../shared/aws/registry.ts';
import { sweep, vmEvent } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { Region } from '../../simulator/aws/region.ts';
import { startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { engineOn, type Stage } from './stage.ts';

const MINUTE_MS = 60_000;
const SHOOT = { 'kubernetes.io/cluster/shoot--demo': '1', 'kubernetes.io/role/node': '1' };
const KARPENTER = { 'karpenter.sh/nodepool': 'default', 'kubernetes.io/cluster/eks-demo': 'owned' };

interface Estate {
  readonly machines: readonly string[];
  readonly karpenterNode: string;
  readonly survivor: string;
  readonly kept: Readonly<Record<string, string>>;
}

/** A cluster's VMs die while its controller is off. */
export async function awsAct(stage: Stage): Promise<void> {
  stage.act('AWS: the machines of a cluster die while their controller is off');
  const world = new World();
  const simulator = await startAwsSimulator({ world });
  try {
    // The SDK's own settings point it at the simulator; the keys are none.
    Object.assign(process.env, {
      AWS_ENDPOINT_URL: simulator.url,
      AWS_ACCESS_KEY_ID: 'demo',
      AWS_SECRET_ACCESS_KEY: 'demo',
    });
    await play(stage, world, simulator.region(), simulator);
  } finally {
    await simulator.close();
  }
}

type Simulator = Awaited<ReturnType<typeof startAwsSimulator>>;

async function play(stage: Stage, world: World, region: Region, simulator: Simulator): Promise<void> {
  const engine = engineOn(world, aws({ region: region.name }));
  const call = { signal: new AbortController().signal };
  const estate = furnish(region);
  stage.scene('A node that Karpenter made starts. No tag will say whose its disk was, so the event has it claimed.');
  const started = { eventId: 'e', cloud: 'aws', scopeId: `aws:${region.name}`, place: region.name, time: world.now() };
  await vmEvent(engine, { ...started, change: 'started', vmId: estate.karpenterNode }, { ...call, mode: 'enforce' });

  stage.scene('An hour later the controllers are switched off and the VMs are terminated: NICs and disks stay behind.');
  world.advance(60 * MINUTE_MS);
  for (const vm of [...estate.machines, estate.karpenterNode]) region.terminate(vm);
  const orphans = 2 * estate.machines.length + 2;

  stage.scene('gleaner sweep --mode enforce: the first sighting. Everything waits for its grace of 30 minutes.');
  const first = (await sweep(engine, 'sweep', {}, { ...call, mode: 'enforce' })).report;
  stage.report(first);
  stage.check('nothing is deleted at first sight', first.counts.deleted === 0 && first.counts.wait === orphans);

  stage.scene('31 minutes later: gleaner plan. It writes nothing anywhere.');
  world.advance(31 * MINUTE_MS);
  const before = world.writes().length;
  const plan = (await sweep(engine, 'plan', {}, { ...call, mode: 'enforce' })).report;
  stage.check(
    `${orphans} would go, and the plan made no write call`,
    plan.counts.reap === orphans && world.writes().length === before,
  );

  stage.scene('gleaner sweep --mode enforce');
  const swept = (await sweep(engine, 'sweep', {}, { ...call, mode: 'enforce' })).report;
  stage.report(swept);
  stage.check(`${orphans} leftovers deleted`, swept.counts.deleted === orphans && swept.counts.failed === 0);
  for (const [what, id] of Object.entries(estate.kept)) stage.check(`kept: ${what}`, stands(region, id));

  stage.scene('gleaner history: a record of every deletion, written before the call and completed after it');
  const records = await history(new Ledger(engine.store), 100);
  for (const { at, kind, id, name } of records) stage.say(`  ${at}  ${kind}  ${id}  ${name}`);
  stage.check('one record for each', records.length === orphans);
  stage.say(`  EC2 was called ${simulator.world.requests.length} times in all`);
}

function stands(region: Region, id: string): boolean {
  return region.volumes.get(id) !== undefined || region.enis.get(id) !== undefined;
}

function furnish(region: Region): Estate {
  const machine = (name: string) => {
    const vm = region.run({ name, tags: SHOOT, volumes: [{ tags: { Name: name, ...SHOOT } }] });
    region.attachEni(
      region.createEni({ tags: { 'node.k8s.amazonaws.com/instance_id': vm }, description: `aws-K8S-${vm}` }),
      vm,
    );
    return vm;
  };
  const machines = ['shoot--demo--pool-a1', 'shoot--demo--pool-b2', 'shoot--demo--pool-c3'].map(machine);
  const karpenterNode = region.run({
    name: 'ip-10-0-0-7',
    tags: KARPENTER,
    volumes: [{ tags: KARPENTER }],
    enis: [{ tags: KARPENTER }],
  });
  const survivor = machine('shoot--demo--pool-d4');
  const detached = region.createVolume({ tags: { 'gleaner-owner': survivor } });
  return {
    machines,
    karpenterNode,
    survivor,
    kept: {
      'a persistent volume': region.createVolume({
        tags: { ...SHOOT, 'kubernetes.io/created-for/pvc/name': 'data-0' },
      }),
      'a disk that somebody opted out': region.createVolume({
        tags: { Name: 'shoot--demo--pool-a1', ...SHOOT, 'gleaner-keep': '' },
      }),
      'the disk of a VM that lives': detached,
      'a network interface that AWS manages': region.createEni({
        tags: SHOOT,
        over: { RequesterManaged: true, InterfaceType: 'lambda' },
      }),
      'a disk that nobody tagged': region.createVolume(),
      'a disk whose owner nothing names': region.createVolume({ tags: KARPENTER }),
    },
  };
}
