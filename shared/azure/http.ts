import type { PipelinePolicy, PipelineRequest, PipelineResponse, SendRequest } from '@azure/core-rest-pipeline';
import { TokenBucket } from 'limiter';
import type { CallCounter, Clock } from '../core/ports.ts';
import { retryAfterOf } from './errors.ts';

/** Counts every HTTP request, retries and polls included, by the name that {@link operationOf} gives it. */
export class Calls implements CallCounter {
  readonly #counts = new Map<string, number>();

  add(operation: string): void {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}

const GROUPS: Readonly<Record<string, string>> = {
  'microsoft.compute/disks': 'Disks',
  'microsoft.compute/virtualmachines': 'VirtualMachines',
  'microsoft.network/networkinterfaces': 'NetworkInterfaces',
};
const POLLS: Readonly<Record<string, string>> = {
  'microsoft.compute': 'Disks_Poll',
  'microsoft.network': 'NetworkInterfaces_Poll',
};

/** The API's name of a request (`Disks_Get`), from its method and URL; polls of long-running operations are `…_Poll`. */
export function operationOf(method: string, url: string): string {
  const path = new URL(url).pathname.toLowerCase();
  if (path.endsWith('/providers/microsoft.resourcegraph/resources')) return 'ResourceGraph_Resources';
  const polled = /\/providers\/(microsoft\.[a-z]+)\/locations\//.exec(path)?.[1];
  if (polled !== undefined) return POLLS[polled] ?? 'Other_Poll';
  const match = /\/providers\/(microsoft\.[a-z]+\/[a-z]+)(\/[^/]+)?$/.exec(path);
  const group = match?.[1] === undefined ? undefined : GROUPS[match[1]];
  if (!group) return `Other_${method}`;
  if (match?.[2] === undefined)
    return path.includes('/resourcegroups/') ? `${group}_ListByResourceGroup` : `${group}_List`;
  return `${group}_${method === 'GET' ? 'Get' : method === 'DELETE' ? 'Delete' : method}`;
}

/** Outside the retries' reach: counts and paces each single request, and ends one that hangs, its body included. */
export function requestPolicy(calls: Calls, pacer: Pacer, timeoutMs: number): PipelinePolicy {
  return {
    name: 'gleanerRequestPolicy',
    async sendRequest(request: PipelineRequest, next: SendRequest): Promise<PipelineResponse> {
      const operation = operationOf(request.method, request.url);
      const outer = request.abortSignal as AbortSignal | undefined;
      await pacer.admit(operation, outer);
      calls.add(operation);
      const timeout = AbortSignal.timeout(timeoutMs);
      request.abortSignal = outer ? AbortSignal.any([outer, timeout]) : timeout;
      try {
        const response = await next(request);
        pacer.note(operation, response);
        return response;
      } finally {
        request.abortSignal = outer;
      }
    },
  };
}

/**
 * ARM's token buckets per subscription and principal: 200 deletes and 10 a second, 250 reads and 25 a second. Source:
 * learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling.
 */
const DELETES = { bucketSize: 200, tokensPerInterval: 10, interval: 1000 };
const READS = { bucketSize: 25, tokensPerInterval: 25, interval: 1000 };
/** So few reads left, as ARM's headers tell: from here on reads are paced. */
const FEW_READS = 50;

/**
 * Keeps one subscription's requests within ARM's rates, and holds all of a kind back while the cloud asks for it.
 * Deletes are paced from the start; reads only once ARM says that they run short, since it tells with every answer.
 */
export class Pacer {
  readonly #clock: Clock;
  readonly #maxWaitMs: number;
  readonly #deletes = bucketOf(DELETES, DELETES.bucketSize);
  #reads: TokenBucket | undefined;
  readonly #heldUntil = { read: 0, delete: 0 };

  constructor(clock: Clock, maxWaitMs: number) {
    this.#clock = clock;
    this.#maxWaitMs = maxWaitMs;
  }

  async admit(operation: string, signal: AbortSignal | undefined): Promise<void> {
    // Resource Graph has a quota of its own, which its headers tell.
    if (operation === 'ResourceGraph_Resources') return;
    const kind = kindOf(operation);
    const heldMs = this.#heldUntil[kind] - this.#clock.now().getTime();
    if (heldMs > 0) await this.#clock.sleep(heldMs, signal);
    signal?.throwIfAborted();
    await (kind === 'delete' ? this.#deletes : this.#reads)?.removeTokens(1);
    signal?.throwIfAborted();
  }

  note(operation: string, response: PipelineResponse): void {
    if (operation === 'ResourceGraph_Resources') return;
    const kind = kindOf(operation);
    const left = Number(response.headers.get('x-ms-ratelimit-remaining-subscription-reads') ?? Number.NaN);
    if (kind === 'read' && (response.status === 429 || left < FEW_READS)) this.#reads ??= bucketOf(READS, 0);
    if (response.status !== 429) return;
    const waitMs = retryAfterOf(response.headers) ?? 0;
    // A longer wait is the caller's to take: it comes back as an error with its time.
    if (waitMs <= this.#maxWaitMs) this.#heldUntil[kind] = this.#clock.now().getTime() + waitMs;
  }
}

function kindOf(operation: string): 'read' | 'delete' {
  return operation.endsWith('_Delete') ? 'delete' : 'read';
}

function bucketOf(options: typeof READS, content: number): TokenBucket {
  const bucket = new TokenBucket(options);
  bucket.content = content;
  return bucket;
}

const MAX_TRIES = 4;
const FIRST_DELAY_MS = 500;

/**
 * Retries what a repetition may mend: 429, 408, 5xx, broken and hanging connections. All our requests may be repeated
 * (reads, queries, deletes). Instead of the SDK's own policy, which waits for any Retry-After however long: a function
 * has a time limit, and a long wait is the queue's.
 */
export function retryPolicy(clock: Clock, maxWaitMs: number): PipelinePolicy {
  return {
    name: 'gleanerRetryPolicy',
    async sendRequest(request: PipelineRequest, next: SendRequest): Promise<PipelineResponse> {
      for (let tried = 1; ; tried += 1) {
        const signal = request.abortSignal as AbortSignal | undefined;
        const outcome = await next(request).catch((error: unknown) => ({ error }));
        const failed = 'error' in outcome;
        if (failed ? !isBroken(outcome.error, signal) : !isTransient(outcome.status)) return unwrap(outcome);
        const asked = failed ? undefined : retryAfterOf(outcome.headers);
        const delayMs = asked ?? FIRST_DELAY_MS * 2 ** (tried - 1) * (0.75 + Math.random() / 2);
        if (tried >= MAX_TRIES || delayMs > maxWaitMs) return unwrap(outcome);
        await clock.sleep(delayMs, signal);
      }
    },
  };
}

function unwrap(outcome: PipelineResponse | { error: unknown }): PipelineResponse {
  if ('error' in outcome) throw outcome.error;
  return outcome;
}

function isTransient(status: number): boolean {
  return status === 429 || status === 408 || (status >= 500 && status !== 501 && status !== 505);
}

function isBroken(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted || !(error instanceof Error)) return false;
  return error.name === 'RestError' || error.name === 'AbortError' || error.name === 'TimeoutError';
}
