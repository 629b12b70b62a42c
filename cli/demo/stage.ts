import type { Engine } from '../../shared/core/engine.ts';
import { parsePolicy } from '../../shared/core/policy.ts';
import type { Cloud } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import type { World } from '../../simulator/world/world.ts';
import { printReport } from '../output/report-table.ts';
import { paint } from '../output/style.ts';

/** Tells the story and keeps count of what did not go as told. */
export class Stage {
  #failures = 0;

  say(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  act(title: string): void {
    this.say(`\n${paint('bold', `== ${title}`)}`);
  }

  scene(text: string): void {
    this.say(`\n${paint('cyan', `-- ${text}`)}`);
  }

  report(report: Report): void {
    const kept: Record<string, number> = {};
    for (const { verdict, reason } of report.items) if (verdict === 'keep') kept[reason] = (kept[reason] ?? 0) + 1;
    printReport(report, kept, true);
  }

  /** What the story claims, checked. */
  check(claim: string, holds: boolean): void {
    if (!holds) this.#failures += 1;
    this.say(holds ? paint('green', `ok: ${claim}`) : paint('red', `NOT SO: ${claim}`));
  }

  end(): number {
    this.say(
      this.#failures === 0
        ? paint('green', '\nAll as told.')
        : paint('red', `\n${this.#failures} things were not as told.`),
    );
    return this.#failures === 0 ? 0 : 1;
  }
}

/** An engine whose time is the simulated world's. */
export function engineOn(world: World, cloud: Cloud): Engine {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const notifier = { notify: async () => {} };
  return { cloud, store: new MemoryLedger(world.clock), policy: parsePolicy({}), clock: world.clock, log, notifier };
}
