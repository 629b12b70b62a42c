import type { Engine } from '../../shared/core/engine.ts';
import { CloudError } from '../../shared/core/errors.ts';
import type { VmEvent } from '../../shared/core/model.ts';
import { type PolicyInput, parsePolicy } from '../../shared/core/policy.ts';
import type { LedgerStore, Log, Notice, Work, WorkQueue } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { SimClock } from '../../simulator/world/clock.ts';
import type { FakeCloud } from './fake-cloud.ts';

export const START = new Date('2026-12-01T12:00:00Z');

/** A queue that a test empties by hand. */
export class TestQueue implements WorkQueue {
  readonly sent: { work: Work; delayMs: number }[] = [];
  readonly dead: { work: Work; reason: string }[] = [];
  async send(work: Work, delayMs: number): Promise<void> {
    this.sent.push({ work, delayMs });
  }
  async giveUp(work: Work, reason: string): Promise<void> {
    this.dead.push({ work, reason });
  }
}

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

export interface TestEngine extends Engine {
  readonly clock: SimClock;
  readonly notices: Notice[];
  readonly cloud: FakeCloud;
}

export function testEngine(
  cloud: FakeCloud,
  store: LedgerStore,
  policy: PolicyInput = {},
  queue?: WorkQueue,
): TestEngine {
  const notices: Notice[] = [];
  const notifier = { notify: async (notice: Notice) => void notices.push(notice) };
  return {
    cloud,
    store,
    policy: parsePolicy(policy),
    clock: new SimClock(START),
    log: silent,
    notifier,
    notices,
    ...(queue && { queue }),
  };
}

export const enforce = { mode: 'enforce' as const, signal: new AbortController().signal };
export const observe = { mode: 'observe' as const, signal: new AbortController().signal };
export const MINUTE = 60_000;

/** `store` with some of its methods replaced. */
export function delegate(store: LedgerStore, over: Partial<LedgerStore>): LedgerStore {
  return {
    get: (key) => store.get(key),
    getMany: (keys) => store.getMany(keys),
    put: (...args) => store.put(...args),
    delete: (...args) => store.delete(...args),
    query: (...args) => store.query(...args),
    close: () => store.close(),
    ...over,
  };
}

/** A policy that waits for nothing. */
export const AT_ONCE = { grace: '0', minAge: '0' };

/** Of every item: verdict, reason and outcome. */
export const reasons = (report: Report) =>
  Object.fromEntries(report.items.map(({ id, verdict, reason, outcome }) => [id, `${verdict} ${reason} ${outcome}`]));

export const died = (vmId: string, time = START): VmEvent => ({
  eventId: `event-${vmId}`,
  cloud: 'fake',
  change: 'deleted',
  scopeId: 'fake:here',
  vmId,
  place: 'here',
  time,
});

export const cloudError = (
  code: 'throttled' | 'in-use' | 'reserved' | 'locked' | 'denied' | 'unavailable',
  retryAfterMs?: number,
) => new CloudError({ code, nativeCode: code, operation: 'delete', message: code, retryAfterMs });
