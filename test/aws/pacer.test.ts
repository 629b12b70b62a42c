import pMap from 'p-map';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Pacer } from '../../shared/aws/pacer.ts';

const LATENCY_MS = 50;
const CONCURRENCY = 12;

/** What the cloud lets through: a bucket that holds `burst` and refills by `perSecond`. */
class Cloud {
  throttled = 0;
  #tokens: number;
  #atMs = Date.now();
  readonly #burst: number;
  readonly #perSecond: number;

  constructor(burst: number, perSecond: number) {
    this.#burst = burst;
    this.#tokens = burst;
    this.#perSecond = perSecond;
  }

  admits(): boolean {
    const now = Date.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#atMs) / 1000) * this.#perSecond);
    this.#atMs = now;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return true;
    }
    this.throttled += 1;
    return false;
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Seconds that `count` requests take, each tried until it is let through. */
async function seconds(count: number, cloud: Cloud): Promise<number> {
  const pacer = new Pacer({ perSecond: 10 });
  const startMs = Date.now();
  let endMs = startMs;
  const one = async () => {
    for (;;) {
      await pacer.take();
      await wait(LATENCY_MS);
      if (cloud.admits()) break;
      pacer.throttled();
    }
    endMs = Date.now();
  };
  let done = false;
  const all = pMap(Array.from({ length: count }), one, { concurrency: CONCURRENCY }).then(() => {
    done = true;
  });
  while (!done) await vi.advanceTimersByTimeAsync(1000);
  await all;
  return (endMs - startMs) / 1000;
}

it('holds nothing back where nothing is throttled', async () => {
  const cloud = new Cloud(Number.POSITIVE_INFINITY, 0);
  expect(await seconds(1000, cloud)).toBeLessThan(5);
  expect(cloud.throttled).toBe(0);
});

it.each([
  // The goal is for the refill that the pacer expects; where the cloud gives less or more, it finds its way to it.
  { burst: 100, perSecond: 10, rate: 0.95, throttled: 0.02 },
  { burst: 50, perSecond: 5, rate: 0.95, throttled: 0.04 },
  { burst: 200, perSecond: 20, rate: 0.6, throttled: 0.02 },
])('takes what a bucket of $burst and $perSecond a second gives', async ({ burst, perSecond, rate, throttled }) => {
  const cloud = new Cloud(burst, perSecond);
  const count = 1500;
  const took = await seconds(count, cloud);
  expect((count - burst) / perSecond / took).toBeGreaterThan(rate);
  expect(cloud.throttled / (count + cloud.throttled)).toBeLessThan(throttled);
});
