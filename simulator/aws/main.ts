import { parseArgs } from 'node:util';
import { World } from '../world/world.ts';
import { startAwsSimulator } from './server.ts';

/**
 * The EC2 simulator as a process of its own, for benchmarks and for trying things by hand:
 * `node simulator/aws/main.ts --port 5000 --orphan-volumes 1000 --latency 50`. Prints its URL as JSON.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    latency: { type: 'string', default: '0' },
    'orphan-volumes': { type: 'string', default: '0' },
    'orphan-enis': { type: 'string', default: '0' },
    /** Free, tagged volumes of living owners. */
    'kept-volumes': { type: 'string', default: '0' },
    /** Attached volumes: the estate. */
    'attached-volumes': { type: 'string', default: '0' },
    throttle: { type: 'boolean', default: false },
  },
});

const world = new World({ start: new Date(), ticking: true });
const simulator = await startAwsSimulator({ world, port: Number(values.port) });
world.latencyMs = Number(values.latency);
const region = simulator.region();
const CREATED = new Date(Date.now() - 86_400_000);
const MCM = { 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' };
const hex = (index: number) => index.toString(16).padStart(17, '0');

for (let index = 0; index < Number(values['orphan-volumes']); index += 1) {
  region.createVolume({ tags: { Name: `machine-${index}`, ...MCM } }, { CreateTime: CREATED });
}
for (let index = 0; index < Number(values['orphan-enis']); index += 1) {
  region.createEni({
    tags: { 'node.k8s.amazonaws.com/instance_id': `i-${hex(index)}` },
    description: `aws-K8S-i-${hex(index)}`,
  });
}
const alive = region.run({ name: 'alive', tags: MCM });
for (let index = 0; index < Number(values['kept-volumes']); index += 1) {
  region.createVolume({ tags: { 'gleaner-owner': alive } }, { CreateTime: CREATED });
}
const attachment = [{ InstanceId: alive, State: 'attached' as const }];
for (let index = 0; index < Number(values['attached-volumes']); index += 1) {
  region.createVolume(
    { tags: { Name: `pool-${index}`, ...MCM } },
    { CreateTime: CREATED, State: 'in-use', Attachments: attachment },
  );
}
if (values.throttle) simulator.throttle();
process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
