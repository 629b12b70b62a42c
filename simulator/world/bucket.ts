/** The clouds' own throttle: a bucket of `burst` tokens, refilled at `perSecond`. */
export class TokenBucket {
  readonly burst: number;
  readonly perSecond: number;
  #tokens: number;
  #atMs: number;

  constructor(burst: number, perSecond: number, now: Date) {
    this.burst = burst;
    this.perSecond = perSecond;
    this.#tokens = burst;
    this.#atMs = now.getTime();
  }

  /** False = throttled; a throttled request takes nothing. */
  take(now: Date): boolean {
    const elapsedS = Math.max(0, now.getTime() - this.#atMs) / 1000;
    this.#tokens = Math.min(this.burst, this.#tokens + elapsedS * this.perSecond);
    this.#atMs = now.getTime();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  get tokens(): number {
    return this.#tokens;
  }
}
