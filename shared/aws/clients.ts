import { EC2Client } from '@aws-sdk/client-ec2';
import type { CallCounter } from '../core/ports.ts';
import { toCloudError } from './errors.ts';
import { Pacer } from './pacer.ts';

const DELETES = new Set(['DeleteVolume', 'DeleteNetworkInterface']);
/** The middle of what is reported of EC2's refill for deletes (5–20 a second). */
export const DELETES_PER_SECOND = 10;
const MAX_SOCKETS = 64;

/** Counts every HTTP request by operation, retries too. */
export class RequestCounter implements CallCounter {
  readonly #counts: Record<string, number> = {};
  add(operation: string): void {
    this.#counts[operation] = (this.#counts[operation] ?? 0) + 1;
  }
  counts(): Readonly<Record<string, number>> {
    return { ...this.#counts };
  }
}

/**
 * One region's client with its connections, credentials and pace kept between runs; each run counts its own requests.
 * Endpoint, profile and credentials are the SDK's own settings (AWS_ENDPOINT_URL, AWS_PROFILE, …).
 */
export class RegionClients {
  readonly region: string;
  readonly #base: EC2Client;
  readonly #pacer: Pacer;

  constructor(region: string, deletesPerSecond: number) {
    this.region = region;
    this.#pacer = new Pacer({ perSecond: deletesPerSecond });
    this.#base = new EC2Client(clientSettings(region));
  }

  /** A client that counts into `counter`; it shares connections and credentials with every other of this region. */
  ec2(counter: RequestCounter): EC2Client {
    const { requestHandler, credentials } = this.#base.config;
    const client = new EC2Client({ ...clientSettings(this.region), requestHandler, credentials });
    // Lowest in this step is inside the retries: it sees every attempt.
    client.middlewareStack.add(
      (next, context) => async (args) => {
        const operation = (context.commandName ?? 'unknown').replace(/Command$/, '');
        const paced = DELETES.has(operation);
        if (paced) await this.#pacer.take();
        counter.add(operation);
        try {
          return await next(args);
        } catch (error) {
          if (paced && toCloudError(error, operation).code === 'throttled') this.#pacer.throttled();
          throw error;
        }
      },
      { step: 'finalizeRequest', priority: 'low', name: 'gleanerCountAndPace' },
    );
    return client;
  }
}

/** What a region's clients are made with: bounded connections, a timeout that throws, the SDK's own retries. */
export function clientSettings(region: string) {
  return {
    region,
    maxAttempts: 5,
    retryMode: 'standard',
    // After a freeze a kept connection may be dead without a word: only a timeout that throws gets the SDK to retry.
    requestHandler: {
      connectionTimeout: 3000,
      requestTimeout: 15_000,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
      httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
    },
  } as const;
}
