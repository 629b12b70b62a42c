import type { Clock } from '../../shared/core/ports.ts';
import type { World } from './world.ts';

/** The world's clock, on which waiting moves the world on instead: a run that polls never waits for real. */
export function passingClock(world: World): Clock {
  return {
    now: () => world.now(),
    sleep: (ms, signal) => {
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      world.advance(ms);
      return Promise.resolve();
    },
  };
}
