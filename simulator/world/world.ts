import { Agenda } from './agenda.ts';
import { TokenBucket } from './bucket.ts';
import { SimClock } from './clock.ts';
import { FaultBook } from './faults.ts';

/** One request as a face answered it, for assertions on what was called and whether anything was written. */
export interface RequestRecord {
  readonly cloud: string;
  /** The cloud's name of it: `DescribeVolumes`, `Microsoft.Network/networkInterfaces/delete`. */
  readonly operation: string;
  readonly write: boolean;
  /** The resource in question, where there is one. */
  readonly target: string;
  readonly status: number;
  readonly code?: string;
  readonly at: Date;
}

/**
 * What all simulated clouds share: one clock, one book of faults, one log of requests, throttles, and latency.
 * Each face (simulator/aws, simulator/azure) keeps its own VMs, NICs and disks in its cloud's own shape and puts
 * changes that happen later (an attach that ends, a reservation that lapses) on {@link World.at}.
 */
export class World {
  readonly clock: SimClock;
  readonly faults = new FaultBook();
  readonly requests: RequestRecord[] = [];
  /** Real milliseconds that every answer takes. */
  latencyMs = 0;
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #later = new Agenda();

  constructor(options: { start?: Date; ticking?: boolean } = {}) {
    this.clock = new SimClock(options.start ?? new Date('2026-12-01T12:00:00Z'), { ticking: options.ticking ?? false });
  }

  now(): Date {
    this.settle();
    return this.clock.now();
  }

  /** Moves the clock, running what falls due on the way, each at its own time. */
  advance(ms: number): void {
    const end = this.clock.now().getTime() + ms;
    for (let next = this.#later.nextMs; next !== undefined && next <= end; next = this.#later.nextMs) {
      this.clock.advance(Math.max(0, next - this.clock.now().getTime()));
      this.settle();
    }
    // A ticking clock has moved on by itself meanwhile; it never goes back.
    this.clock.advance(Math.max(0, end - this.clock.now().getTime()));
  }

  /** Runs `run` once the clock has reached `at`. */
  at(at: Date, run: () => void): void {
    this.#later.add(at.getTime(), run);
  }

  throttle(operation: string, burst: number, perSecond: number): void {
    this.#buckets.set(operation, new TokenBucket(burst, perSecond, this.clock.now()));
  }

  /** False = the face answers as its cloud does when throttled. Operations without a bucket are free. */
  admit(operation: string): boolean {
    return this.#buckets.get(operation)?.take(this.clock.now()) ?? true;
  }

  log(record: Omit<RequestRecord, 'at'>): void {
    this.requests.push({ ...record, at: this.clock.now() });
  }

  writes(): RequestRecord[] {
    return this.requests.filter((request) => request.write);
  }

  private settle(): void {
    for (const { run } of this.#later.takeUntil(this.clock.now().getTime())) run();
  }
}
