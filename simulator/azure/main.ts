import { parseArgs } from 'node:util';
import { World } from '../world/world.ts';
import { startAzureSimulator } from './server.ts';

/**
 * The Azure simulator as a process of its own, for benchmarks and for trying things by hand:
 * `node simulator/azure/main.ts --port 5000 --orphan-disks 1000 --latency 50`. Prints its URL as JSON.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    latency: { type: 'string', default: '0' },
    'orphan-disks': { type: 'string', default: '0' },
    'orphan-nics': { type: 'string', default: '0' },
    /** How long deletions take, in milliseconds, and what pollers are asked to wait, in seconds. */
    'deletion-ms': { type: 'string', default: '0' },
    'retry-after': { type: 'string', default: '1' },
    throttle: { type: 'boolean', default: false },
  },
});

const world = new World({ start: new Date(), ticking: true });
const simulator = await startAzureSimulator({ world, port: Number(values.port) });
world.latencyMs = Number(values.latency);
const subscription = simulator.subscription();
for (const pace of Object.values(subscription.pace)) {
  pace.deletionMs = Number(values['deletion-ms']);
  pace.retryAfterS = Number(values['retry-after']);
}
subscription.createGroup('shoot--one');
const timeCreated = new Date(Date.now() - 86_400_000).toISOString();
// A machine has three disks and one NIC.
const DISKS = ['os-disk', '0-data-disk', '1-data-disk'];
for (let index = 0; index < Number(values['orphan-disks']); index += 1) {
  const name = `shoot--one-${Math.floor(index / DISKS.length)}-${DISKS[index % DISKS.length]}`;
  subscription.createDisk(name, { properties: { timeCreated } });
}
for (let index = 0; index < Number(values['orphan-nics']); index += 1) {
  subscription.createNic(`shoot--one-${index}-nic`);
}
if (values.throttle) simulator.throttle();
process.stdout.write(`${JSON.stringify({ url: simulator.url, subscription: subscription.id })}\n`);
