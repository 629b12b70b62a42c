import { TokenBucket } from 'limiter';

/** Where a cloud's throttle begins is not known before it is met, so until then nothing is held back. */
const UNLIMITED = 100_000;

export interface PaceOptions {
  /** Requests a second after the first throttled answer: what the cloud documents as its refill. */
  readonly perSecond: number;
}

/**
 * Paces one kind of request by what the cloud answers: as fast as it goes until the first throttled answer, then at the
 * documented refill rate, which grows by a twentieth with every second without one and shrinks by a tenth with one.
 */
export class Pacer {
  readonly #options: PaceOptions;
  readonly #bucket = new TokenBucket({ bucketSize: UNLIMITED, tokensPerInterval: UNLIMITED, interval: 'second' });
  #perSecond: number | undefined;
  #changedAtMs = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#bucket.content = UNLIMITED;
  }

  /** Resolves when one more request may be sent. */
  async take(): Promise<void> {
    this.#grow(Date.now());
    await this.#bucket.removeTokens(1);
  }

  /** The cloud said: too many. Several answers at once, of requests that were already on their way, are one. */
  throttled(): void {
    const nowMs = Date.now();
    if (nowMs - this.#changedAtMs < 1000) return;
    const before = this.#perSecond;
    this.#set(before === undefined ? this.#options.perSecond : Math.max(1, before * 0.9), nowMs);
    // What the cloud's bucket held is spent: wait for its refill, not for ours.
    this.#bucket.content = 0;
  }

  #grow(nowMs: number): void {
    if (this.#perSecond === undefined || nowMs - this.#changedAtMs < 10_000) return;
    this.#set(this.#perSecond * 1.05, nowMs);
  }

  #set(perSecond: number, nowMs: number): void {
    this.#perSecond = perSecond;
    this.#changedAtMs = nowMs;
    this.#bucket.tokensPerInterval = perSecond;
    // removeTokens refuses more than the bucket holds; one second's worth lets a late timer catch up.
    this.#bucket.bucketSize = Math.max(1, perSecond);
    this.#bucket.content = Math.min(this.#bucket.content, this.#bucket.bucketSize);
  }
}
