/**
 * Canonical error codes. Each cloud has one table that maps its own codes to these
 * (structured code before message text); what it does not recognise is `unknown`.
 */
export type ErrorCode =
  | 'gone' // it does not exist (any more): for a delete, success
  | 'in-use' // in use again: keep, look again later
  | 'reserved' // Azure NicReservedForAnotherVm: retry after 200 s
  | 'throttled'
  | 'conflict' // another operation is running: retry with backoff
  | 'locked' // management lock, deny assignment, deletion protection: terminal
  | 'denied' // not permitted: terminal
  | 'invalid' // the request is wrong: terminal
  | 'unavailable' // 5xx, timeouts, broken connections: retry with backoff
  | 'unknown'; // report, keep, next sweep

const RETRY_AFTER_MS: Partial<Record<ErrorCode, number>> = {
  'in-use': 60_000,
  reserved: 200_000,
  throttled: 30_000,
  conflict: 60_000,
  unavailable: 30_000,
};

/** Would the same call later help? Terminal and unknown errors wait for the next sweep instead. */
export function isRetryable(code: ErrorCode): boolean {
  return RETRY_AFTER_MS[code] !== undefined;
}

export interface CloudErrorInit {
  readonly code: ErrorCode;
  /** The cloud's own code: `VolumeInUse`, `ScopeLocked`. */
  readonly nativeCode: string;
  readonly operation: string;
  readonly message: string;
  /** What the cloud asked for (Retry-After), in ms. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** What adapters throw: nothing of an SDK's error type passes their edge except as `cause`. */
export class CloudError extends Error {
  override readonly name = 'CloudError';
  readonly code: ErrorCode;
  readonly nativeCode: string;
  readonly operation: string;
  readonly retryAfterMs: number | undefined;

  constructor(init: CloudErrorInit) {
    super(init.message, { cause: init.cause });
    this.code = init.code;
    this.nativeCode = init.nativeCode;
    this.operation = init.operation;
    const usual = RETRY_AFTER_MS[init.code];
    // A cloud may ask for more time than usual, never for less: the reservation of an Azure NIC ends when it ends.
    this.retryAfterMs = usual === undefined ? undefined : Math.max(usual, init.retryAfterMs ?? 0);
  }
}

/** Bad input: an event, a body, a policy, a flag. `field` is the path of what is wrong. Exit code 2, HTTP 400. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly field: string;
  constructor(field: string, message: string, options?: ErrorOptions) {
    super(`${field}: ${message}`, options);
    this.field = field;
  }
}

/** Anything thrown, as a CloudError: what no adapter translated is `unknown`. */
export function asCloudError(error: unknown, operation: string): CloudError {
  if (error instanceof CloudError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const nativeCode = error instanceof Error ? error.name : typeof error;
  return new CloudError({ code: 'unknown', nativeCode, operation, message, cause: error });
}
