import type { World } from '../world/world.ts';
import type { Delivery, EventSchema } from './events.ts';

const MINUTE_MS = 60_000;
/** Event Grid's schedule, in ms after a failed attempt; after the last one every 12 hours. */
const SCHEDULE_MS = [10_000, 30_000, ...[1, 5, 10, 30, 60, 180, 360, 720].map((minutes) => minutes * MINUTE_MS)];
/** At the least so long after these answers. */
const AT_LEAST_MS: Readonly<Record<number, number>> = { 404: 5 * MINUTE_MS, 408: 2 * MINUTE_MS, 503: 30_000 };
const DONE = new Set([200, 201, 202, 203, 204]);
/** Answers after which it does not try again. */
const HOPELESS = new Set([400, 401, 403, 413]);
/** For so long Event Grid waits for an answer, in real time. */
const ANSWER_MS = 30_000;

export interface WebhookOptions {
  readonly schema?: EventSchema;
  /** Sent along, as an event subscription can be told to. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default 30, the most that Azure allows. */
  readonly maxAttempts?: number;
  /** Counted from the event's publication. Default 24 hours, the most that Azure allows. */
  readonly timeToLiveMs?: number;
}

export interface DeadLetter {
  readonly delivery: Delivery;
  readonly reason: 'MaxDeliveryAttemptsExceeded' | 'TimeToLiveExceeded' | 'NotRetried';
  readonly attempts: number;
  /** What the last attempt ended with: a status, or the name of an error. */
  readonly last: string;
}

/**
 * Delivers events to an endpoint over HTTP as Event Grid does, again and again on the world's clock until the endpoint
 * takes them or an event is given up. The handshake that proves an endpoint's owner is left out.
 * Source: learn.microsoft.com/azure/event-grid/delivery-and-retry.
 */
export class Webhook {
  readonly deadLetters: DeadLetter[] = [];
  readonly #world: World;
  readonly #url: string;
  readonly #options: WebhookOptions;
  readonly #sending = new Set<Promise<void>>();
  readonly #due = new Set<number>();

  constructor(world: World, url: string, options: WebhookOptions = {}) {
    this.#world = world;
    this.#url = url;
    this.#options = options;
  }

  deliver(delivery: Delivery): void {
    this.#try({ delivery, publishedMs: this.#world.clock.now().getTime(), attempts: 0 });
  }

  /** Resolves once no request is under way. */
  async settled(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  /** Moves the clock from one attempt to the next, until all is delivered or given up. */
  async exhaust(): Promise<void> {
    await this.settled();
    while (this.#due.size > 0) {
      this.#world.advance(Math.max(0, Math.min(...this.#due) - this.#world.clock.now().getTime()));
      await this.settled();
    }
  }

  #try(parcel: Parcel): void {
    const sending = this.#send(parcel).then((last) => {
      this.#sending.delete(sending);
      if (last !== undefined) this.#again({ ...parcel, attempts: parcel.attempts + 1 }, last);
    });
    this.#sending.add(sending);
  }

  /** Undefined = taken. */
  async #send({ delivery, attempts }: Parcel): Promise<string | undefined> {
    const type = this.#options.schema === 'CloudEventSchemaV1_0' ? 'application/cloudevents+json' : 'application/json';
    const headers = {
      'content-type': `${type}; charset=utf-8`,
      'aeg-event-type': 'Notification',
      'aeg-delivery-count': String(attempts),
      ...this.#options.headers,
    };
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const { status, body } = await fetch(this.#url, {
        method: 'POST',
        headers,
        body: JSON.stringify(delivery),
        signal,
      });
      await body?.cancel();
      return DONE.has(status) ? undefined : String(status);
    } catch (error) {
      return error instanceof Error ? error.name : 'Error';
    }
  }

  #again(parcel: Parcel, last: string): void {
    const { delivery, attempts, publishedMs } = parcel;
    const giveUp = (reason: DeadLetter['reason']) => this.deadLetters.push({ delivery, reason, attempts, last });
    const status = Number(last);
    if (HOPELESS.has(status)) return void giveUp('NotRetried');
    if (attempts >= (this.#options.maxAttempts ?? 30)) return void giveUp('MaxDeliveryAttemptsExceeded');
    const usualMs = SCHEDULE_MS[attempts - 1] ?? SCHEDULE_MS.at(-1) ?? 0;
    const dueMs = this.#world.clock.now().getTime() + Math.max(usualMs, AT_LEAST_MS[status] ?? 0);
    if (dueMs > publishedMs + (this.#options.timeToLiveMs ?? 24 * 60 * MINUTE_MS))
      return void giveUp('TimeToLiveExceeded');
    this.#due.add(dueMs);
    this.#world.at(new Date(dueMs), () => {
      this.#due.delete(dueMs);
      this.#try(parcel);
    });
  }
}

interface Parcel {
  readonly delivery: Delivery;
  readonly publishedMs: number;
  /** Made so far. */
  readonly attempts: number;
}
