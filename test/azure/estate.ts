import { azure } from '../../shared/azure/registry.ts';
import { type Engine, reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { type PolicyInput, parsePolicy } from '../../shared/core/policy.ts';
import type { ReapWork, ScopeRequest } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import type { Delivery } from '../../simulator/azure/events.ts';
import { startAzureSimulator } from '../../simulator/azure/server.ts';
import { passingClock } from '../../simulator/world/passing-clock.ts';
import { World } from '../../simulator/world/world.ts';
import { enforce, silent, TestQueue } from '../support/run.ts';

/** An engine over the adapters over the simulator, in one world with one clock; events are collected as they arrive. */
export async function estate(policy: PolicyInput = {}, subscriptions?: readonly string[]) {
  const world = new World();
  const simulator = await startAzureSimulator({ world, ...(subscriptions && { subscriptions }) });
  const clock = passingClock(world);
  const queue = new TestQueue();
  const engine: Engine = {
    cloud: azure({ clock, endpoint: simulator.url }),
    store: new MemoryLedger(clock),
    policy: parsePolicy(policy),
    clock,
    log: silent,
    notifier: { notify: async () => {} },
    queue,
  };
  const deliveries: Delivery[] = [];
  simulator.events.listen((delivery) => deliveries.push(delivery));
  /** Gives the engine every event that has arrived, and takes it from the pile. */
  const handleEvents = async (): Promise<Report[]> => {
    const reports: Report[] = [];
    for (const delivery of deliveries.splice(0)) {
      for (const event of engine.cloud.parseEvent(delivery))
        reports.push((await vmEvent(engine, event, enforce)).report);
    }
    return reports;
  };
  /** Works the queue off, waiting as long as each piece asks for; `rounds` bounds what keeps coming back. */
  const work = async (rounds = 5): Promise<Report[]> => {
    const reports: Report[] = [];
    for (let round = 0; round < rounds && queue.sent.length > 0; round += 1) {
      const due = queue.sent.splice(0);
      world.advance(Math.max(...due.map(({ delayMs }) => delayMs)));
      for (const { work: one } of due) reports.push(await reap(engine, one as ReapWork, enforce));
    }
    return reports;
  };
  /** A sweep that deletes itself what is due, as one without a queue does. */
  const sweepNow = async (request: ScopeRequest): Promise<Report> => {
    const { queue: _, ...alone } = engine;
    return (await sweep(alone, 'sweep', request, enforce)).report;
  };
  const deletes = () => world.writes().map(({ target }) => target.split('/').at(-1));
  return {
    engine,
    world,
    simulator,
    queue,
    deliveries,
    handleEvents,
    work,
    sweepNow,
    deletes,
    sub: simulator.subscription(),
    [Symbol.asyncDispose]: () => simulator.close(),
  };
}
