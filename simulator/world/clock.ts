import type { Clock } from '../../shared/core/ports.ts';

/**
 * A clock that tests move by hand. `sleep` ends when somebody advances past it, so a run under it never waits for real.
 * With `ticking` the clock also follows real time from where it stands, for servers that a person talks to.
 */
export class SimClock implements Clock {
  #offsetMs: number;
  readonly #ticking: boolean;
  readonly #sleepers = new Set<{ dueMs: number; wake: () => void }>();

  constructor(start: Date, options: { ticking?: boolean } = {}) {
    this.#ticking = options.ticking ?? false;
    this.#offsetMs = start.getTime() - (this.#ticking ? Date.now() : 0);
  }

  now(): Date {
    return new Date(this.#offsetMs + (this.#ticking ? Date.now() : 0));
  }

  advance(ms: number): void {
    this.#offsetMs += ms;
    const nowMs = this.now().getTime();
    for (const sleeper of [...this.#sleepers].sort((a, b) => a.dueMs - b.dueMs)) {
      if (sleeper.dueMs <= nowMs) sleeper.wake();
    }
  }

  /** Resolves when the clock has been advanced far enough; rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const finish = (act: () => void) => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', onAbort);
        clearTimeout(timer);
        act();
      };
      const sleeper = { dueMs: this.now().getTime() + ms, wake: () => finish(resolve) };
      const onAbort = () => finish(() => reject(signal?.reason as Error));
      const timer = this.#ticking ? setTimeout(sleeper.wake, ms) : undefined;
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (ms <= 0) sleeper.wake();
    });
  }
}
