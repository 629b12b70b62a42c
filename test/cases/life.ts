import fc from 'fast-check';
import { expect } from 'vitest';
import { type Engine, reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { VmEvent } from '../../shared/core/model.ts';
import type { ReapWork, ScopeRequest } from '../../shared/core/ports.ts';
import type { Fault } from '../../simulator/world/faults.ts';
import type { World } from '../../simulator/world/world.ts';
import { enforce, MINUTE, TestQueue } from '../support/run.ts';

export const POLICY = { grace: '10m', minAge: '5m', settle: '5m' } as const;
const GRACE_MS = 10 * MINUTE;

const machine = fc.constantFrom('m-0', 'm-1', 'm-2');
const index = fc.nat(20);
const anyStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('boot' as const), machine }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('kill' as const), machine }) },
  fc.record({ do: fc.constant('stop' as const), machine }),
  fc.record({ do: fc.constant('detach' as const), machine }),
  fc.record({ do: fc.constant('borrow' as const), machine, index }),
  fc.record({ do: fc.constant('return' as const), index }),
  fc.record({ do: fc.constant('keep' as const), index }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), minutes: fc.constantFrom(1, 4, 6, 11, 31) }) },
  fc.record({ do: fc.constant('lag' as const), on: fc.boolean() }),
  fc.record({
    do: fc.constant('fail' as const),
    read: fc.nat(3),
    as: fc.constantFrom('denied' as const, 'partial' as const, 'cut' as const),
    skip: fc.nat(1),
  }),
  fc.record({ do: fc.constant('lose' as const), kind: fc.nat(1) }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('events' as const), twice: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('work' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('sweep' as const), part: fc.boolean() }) },
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

interface Machine {
  /** The VM's native id, which on some clouds a later VM of the same name has again. */
  readonly id: string;
  readonly name: string;
  readonly since: number;
  alive: boolean;
}

/** What is true of one resource, kept apart from the simulator and from the engine. */
interface Truth {
  readonly owner: Machine;
  kept: boolean;
  freeSince: number | undefined;
  /** Another VM that took it in use since. */
  borrower?: Machine;
}

/** A cloud's part: what people, controllers and the cloud itself do, and how to look. */
export interface Estate {
  readonly world: World;
  readonly engine: Engine;
  readonly close: () => Promise<void>;
  /** Events that have arrived, taken from the pile. */
  readonly arrived: () => VmEvent[];
  readonly scope: ScopeRequest;
  /** A part of the scope that holds everything all the same. */
  readonly part: ScopeRequest;
  /** Operations that read, and the two that delete. */
  readonly reads: readonly string[];
  readonly deletes: readonly [string, string];
  /** How long readers may be shown what was. */
  readonly lagMs: number;
  /** Whether it tells when something became free; where it does not, a use between two looks is not to be seen. */
  readonly tellsDetachTime: boolean;
  /** Starts a VM; returns its id, and the ids of what would outlive it. */
  readonly boot: (name: string) => { readonly id: string; readonly leaves: readonly string[] };
  readonly kill: (id: string) => void;
  readonly stop: (id: string) => void;
  readonly attach: (disk: string, vm: string) => void;
  readonly detach: (disk: string, vm: string) => void;
  readonly isDisk: (id: string) => boolean;
  readonly isFree: (id: string) => boolean;
  readonly isThere: (id: string) => boolean;
  readonly keep: (id: string) => void;
  readonly setLag: (on: boolean) => void;
}

/**
 * Lives of VMs at random, with events late, doubled or never delivered, answers that fail, reads that lag, people who tag,
 * borrow and give back. Every deletion is held against what is true; in the end nothing is left that should have gone.
 */
class Life {
  readonly #at: Estate;
  readonly #machines: Machine[] = [];
  readonly #truths = new Map<string, Truth>();
  readonly #queue = new TestQueue();
  readonly #events: VmEvent[] = [];
  /** Each deletion once, by id; on some clouds a later resource has the id again. */
  readonly #deleted: string[] = [];
  readonly #gone = new Set<string>();
  #lagMs = 0;
  #checked = 0;

  constructor(at: Estate) {
    this.#at = at;
  }

  async play(step: Step): Promise<void> {
    const { world } = this.#at;
    if (step.do === 'boot') this.#boot(step.machine);
    if (step.do === 'kill') this.#kill(step.machine);
    if (step.do === 'stop') for (const { id } of this.#living(step.machine)) this.#at.stop(id);
    if (step.do === 'detach') this.#detach(step.machine);
    if (step.do === 'borrow') this.#borrow(step.machine, step.index);
    if (step.do === 'return') this.#giveBack(step.index);
    if (step.do === 'keep') this.#keep(step.index);
    if (step.do === 'wait') world.advance(step.minutes * MINUTE);
    if (step.do === 'lag') this.#lag(step.on);
    if (step.do === 'fail') this.#fail(step.read, step.as, step.skip);
    // Carried out, and the answer lost.
    if (step.do === 'lose') world.faults.inject(this.#at.deletes[step.kind] ?? '', { kind: 'drop' }, { times: 1 });
    if (step.do === 'events') await this.#deliver(step.twice);
    if (step.do === 'work') await this.#work();
    if (step.do === 'sweep') await this.#sweep(step.part ? this.#at.part : this.#at.scope);
    this.#check();
  }

  /** Everything works again: what is truly left behind goes, all else is there, and each deletion has one record. */
  async end(): Promise<void> {
    const { world, scope, isFree, isThere, engine } = this.#at;
    world.faults.clear();
    this.#lag(false);
    for (let round = 0; round < 4; round += 1) {
      world.advance(31 * MINUTE);
      await this.#sweep(scope);
      this.#check();
    }
    const isWanted = (truth: Truth) => truth.kept || this.#isOwned(truth) || truth.borrower?.alive === true;
    const left = [...this.#truths].filter(([id, truth]) => !isWanted(truth) && isFree(id)).map(([id]) => id);
    expect(left).toEqual([]);
    expect([...this.#truths.keys()].filter((id) => !isThere(id))).toEqual([]);
    const records = await history(new Ledger(engine.store), 1000);
    expect(records.map(({ id }) => id.toLowerCase()).sort()).toEqual(this.#deleted.sort());
  }

  #boot(name: string): void {
    if (this.#living(name).length > 0) return;
    const { id, leaves } = this.#at.boot(name);
    const owner = { id, name, since: this.#nowMs(), alive: true };
    this.#machines.push(owner);
    for (const one of leaves) {
      this.#truths.set(one.toLowerCase(), { owner, kept: false, freeSince: undefined });
      this.#gone.delete(one.toLowerCase());
    }
  }

  #kill(name: string): void {
    for (const vm of this.#living(name)) {
      vm.alive = false;
      this.#at.kill(vm.id);
      for (const [id, truth] of this.#truths) {
        if (truth.owner === vm) truth.freeSince ??= this.#nowMs();
        if (truth.borrower === vm) this.#freed(id, truth);
      }
    }
  }

  #detach(name: string): void {
    for (const [id, truth] of this.#truths) {
      const isOn = truth.owner.alive && truth.owner.name === name && truth.freeSince === undefined;
      if (isOn && this.#at.isDisk(id)) this.#freed(id, truth);
    }
  }

  #borrow(name: string, at: number): void {
    const [id, truth] = this.#nth(at);
    const [vm] = this.#living(name);
    if (!id || !truth || !vm || !this.#at.isDisk(id) || !this.#at.isFree(id)) return;
    truth.borrower = vm;
    truth.freeSince = undefined;
    this.#at.attach(id, vm.id);
  }

  #giveBack(at: number): void {
    const [id, truth] = this.#nth(at);
    if (id && truth?.borrower?.alive && !this.#at.isFree(id)) this.#freed(id, truth);
  }

  #freed(id: string, truth: Truth): void {
    const vm = truth.borrower ?? truth.owner;
    if (!this.#at.isFree(id)) this.#at.detach(id, vm.id);
    truth.freeSince = this.#nowMs();
  }

  #keep(at: number): void {
    const [id, truth] = this.#nth(at);
    if (!id || !truth) return;
    this.#at.keep(id);
    truth.kept = true;
    // Nobody can heed a tag that the cloud does not show yet.
    this.#at.world.advance(this.#lagMs);
  }

  #lag(on: boolean): void {
    this.#lagMs = on ? this.#at.lagMs : 0;
    this.#at.setLag(on);
  }

  #fail(read: number, as: 'denied' | 'partial' | 'cut', skip: number): void {
    const denied = { kind: 'error', status: 403, code: 'UnauthorizedOperation', message: 'no' } as const;
    const fault: Fault = as === 'denied' ? denied : { kind: as };
    this.#at.world.faults.inject(this.#at.reads[read % this.#at.reads.length] ?? '', fault, { times: 1, skip });
  }

  /** As the queue would: an event that is to be looked at again, or whose look failed, comes back. */
  async #deliver(twice: boolean): Promise<void> {
    const { engine, arrived } = this.#at;
    for (const event of [...this.#events.splice(0), ...arrived()]) {
      for (let times = twice ? 2 : 1; times > 0; times -= 1) {
        const done = await vmEvent({ ...engine, queue: this.#queue }, event, enforce).catch(() => undefined);
        if (!done || done.result.laterMs !== undefined) this.#events.push(event);
      }
    }
  }

  async #work(): Promise<void> {
    const { engine } = this.#at;
    for (const sent of this.#queue.sent.splice(0)) {
      const done = await reap({ ...engine, queue: this.#queue }, sent.work as ReapWork, enforce).catch(() => undefined);
      if (!done) this.#queue.sent.push(sent);
    }
  }

  async #sweep(request: ScopeRequest): Promise<void> {
    await sweep(this.#at.engine, 'sweep', request, enforce);
  }

  /** Every deletion that was accepted since the last look. One whose answer was lost is asked for twice. */
  #check(): void {
    const { world, deletes, tellsDetachTime } = this.#at;
    for (const { operation, status, target, at } of world.requests.slice(this.#checked)) {
      const id = target.toLowerCase();
      if (!deletes.includes(operation) || (status !== 200 && status !== 202) || this.#gone.has(id)) continue;
      const truth = this.#truths.get(id);
      expect(truth, `${target} is none of what may ever go`).toBeDefined();
      if (!truth) continue;
      expect({ id, kept: truth.kept, owned: this.#isOwned(truth) }).toEqual({ id, kept: false, owned: false });
      const freeMs = at.getTime() - (truth.freeSince ?? Number.POSITIVE_INFINITY);
      if (tellsDetachTime || !truth.borrower) expect(freeMs).toBeGreaterThanOrEqual(GRACE_MS);
      this.#truths.delete(id);
      this.#gone.add(id);
      this.#deleted.push(id);
    }
    this.#checked = world.requests.length;
  }

  #isOwned({ owner }: Truth): boolean {
    const isShown = ({ since }: Machine) => this.#nowMs() - since >= this.#lagMs;
    return owner.alive || this.#machines.some((vm) => vm.alive && vm.name === owner.name && isShown(vm));
  }

  #living(name: string): Machine[] {
    return this.#machines.filter((vm) => vm.alive && vm.name === name);
  }

  #nth(at: number): [string, Truth] | [] {
    return [...this.#truths][at % Math.max(1, this.#truths.size)] ?? [];
  }

  #nowMs(): number {
    return this.#at.world.now().getTime();
  }
}

/** Lives `CHAOS_RUNS` lives (default 60), each in an estate of its own. */
export async function live(open: () => Promise<Estate>): Promise<void> {
  const property = fc.asyncProperty(fc.array(anyStep, { minLength: 8, maxLength: 40 }), async (steps) => {
    const at = await open();
    try {
      const life = new Life(at);
      for (const step of steps) await life.play(step);
      await life.end();
    } finally {
      await at.close();
    }
  });
  await fc.assert(property, { numRuns: Number(process.env.CHAOS_RUNS ?? 60) });
}
