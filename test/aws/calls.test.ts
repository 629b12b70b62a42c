import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { sweep } from '../../shared/core/engine.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';
import { enforce, testEngine } from '../support/run.ts';

const MCM = { 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' };
const hex = (index: number) => index.toString(16).padStart(17, '0');

/** What a sweep costs in calls is a promise: ⌈L/1000⌉ pages a type + ⌈owners/200⌉ + ⌈N/200⌉ rereads + N deletes. */
describe('calls of a sweep on AWS', () => {
  let simulator: AwsSimulator;
  beforeAll(async () => {
    simulator = await startAwsSimulator({ world: new World() });
    Object.assign(process.env, awsEnvironment(simulator.url));
  });
  afterAll(() => simulator.close());
  beforeEach(() => {
    const region = simulator.region();
    for (const { VolumeId = '' } of region.volumes.all()) region.volumes.set(VolumeId, undefined);
    for (const { NetworkInterfaceId = '' } of region.enis.all()) region.enis.set(NetworkInterfaceId, undefined);
  });

  const orphans = (volumes: number, enis: number) => {
    const region = simulator.region();
    for (let index = 0; index < volumes; index += 1)
      region.createVolume({ tags: { 'gleaner-owner': `i-${hex(index)}`, ...MCM } });
    for (let index = 0; index < enis; index += 1)
      region.createEni({ tags: { 'node.k8s.amazonaws.com/instance_id': `i-${hex(index)}` } });
  };
  const run = async () => {
    const policy = { grace: '0', minAge: '0', budget: { perRun: 5000, perHour: 5000 } };
    // The engine's clock is the simulator's own, so that what was created is not in its future.
    const engine = {
      ...testEngine(aws({ region: 'us-east-1' }) as never, new MemoryLedger(), policy),
      clock: simulator.world.clock,
    };
    return (await sweep(engine, 'sweep', {}, enforce)).report;
  };

  it('of one orphan of each kind with one owner', async () => {
    orphans(1, 1);
    const { calls, counts } = await run();
    expect(counts.deleted).toBe(2);
    expect(calls).toEqual({
      DescribeVolumes: 2,
      DescribeNetworkInterfaces: 2,
      DescribeInstances: 1,
      DeleteVolume: 1,
      DeleteNetworkInterface: 1,
    });
  });

  it('of 1,500 volumes and 450 ENIs of 1,500 owners', async () => {
    orphans(1500, 450);
    const { calls, counts } = await run();
    expect(counts).toMatchObject({ listed: 1950, deleted: 1950, failed: 0 });
    expect(calls).toEqual({
      DescribeVolumes: Math.ceil(1500 / 1000) + Math.ceil(1500 / 200),
      DescribeNetworkInterfaces: Math.ceil(450 / 1000) + Math.ceil(450 / 200),
      DescribeInstances: Math.ceil(1500 / 200),
      DeleteVolume: 1500,
      DeleteNetworkInterface: 450,
    });
  });

  it('is the same in an estate a hundred times as large', async () => {
    orphans(30, 20);
    const small = await run();
    orphans(30, 20);
    const region = simulator.region();
    const alive = region.run({ name: 'alive' });
    const attachment = [{ InstanceId: alive, State: 'attached' as const }];
    for (let index = 0; index < 5000; index += 1) {
      region.createVolume({ tags: { Name: `pool-${index}`, ...MCM } }, { State: 'in-use', Attachments: attachment });
    }
    const large = await run();
    expect(large.counts).toEqual(small.counts);
    expect(large.calls).toEqual(small.calls);
  });

  it('of nothing', async () => {
    const { calls } = await run();
    expect(calls).toEqual({ DescribeVolumes: 1, DescribeNetworkInterfaces: 1 });
  });
});
