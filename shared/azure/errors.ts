import { CloudError, type ErrorCode } from '../core/errors.ts';

/** Azure's structured codes. Compared exactly; what is not here falls back to the HTTP status. */
const BY_CODE: Readonly<Record<string, ErrorCode>> = {
  ResourceNotFound: 'gone',
  ResourceGroupNotFound: 'gone',
  NicReservedForAnotherVm: 'reserved',
  NicInUse: 'in-use',
  NicInUseWithPrivateEndpoint: 'in-use',
  DiskInUse: 'in-use',
  AttachDiskWhileBeingDetached: 'conflict',
  Conflict: 'conflict',
  AnotherOperationInProgress: 'conflict',
  OperationPreempted: 'conflict',
  RetryableErrorDueToAnotherOperation: 'conflict',
  CanceledAndSupersededDueToAnotherOperation: 'conflict',
  ReferencedResourceNotProvisioned: 'conflict',
  TooManyRequests: 'throttled',
  RateLimiting: 'throttled',
  SubscriptionRequestsThrottled: 'throttled',
  ResourceRequestsThrottled: 'throttled',
  ScopeLocked: 'locked',
  DenyAssignmentAuthorizationFailed: 'locked',
  AuthorizationFailed: 'denied',
  LinkedAuthorizationFailed: 'denied',
  RequestDisallowedByPolicy: 'denied',
  InvalidAuthenticationToken: 'denied',
  InvalidAuthenticationTokenTenant: 'denied',
  ExpiredAuthenticationToken: 'denied',
  AuthenticationFailed: 'denied',
  InternalServerError: 'unavailable',
  InternalExecutionError: 'unavailable',
  InternalOperationError: 'unavailable',
  ServerTimeout: 'unavailable',
  GatewayTimeout: 'unavailable',
  ServiceUnavailable: 'unavailable',
  RetryableError: 'unavailable',
  BadRequest: 'invalid',
  InvalidParameter: 'invalid',
  InvalidApiVersionParameter: 'invalid',
  InvalidSubscriptionId: 'invalid',
};

/** Codes that say several things: their message decides. What it does not say stays `unknown`. */
const BY_MESSAGE: Readonly<Record<string, readonly (readonly [RegExp, ErrorCode])[]>> = {
  OperationNotAllowed: [
    [/marked for deletion/i, 'conflict'],
    [/is attached to|being used|in use|used by/i, 'in-use'],
  ],
};

/** What the connection, not the cloud, says. `PARSE_ERROR` is an answer that ended in the middle of its body. */
const BROKEN = new Set([
  'REQUEST_SEND_ERROR',
  'PARSE_ERROR',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
]);
const ABORTED = new Set(['AbortError', 'TimeoutError']);
const NO_CREDENTIAL = new Set([
  'CredentialUnavailableError',
  'AuthenticationError',
  'AggregateAuthenticationError',
  'AuthenticationRequiredError',
]);

export interface NativeError {
  readonly status?: number;
  readonly code?: string;
  readonly message: string;
}

/** The canonical code: structured code first, then the message where a code is ambiguous, then the HTTP status. */
export function classify({ status, code, message }: NativeError): ErrorCode {
  if (code !== undefined && Object.hasOwn(BY_CODE, code)) return BY_CODE[code] as ErrorCode;
  if (code !== undefined && Object.hasOwn(BY_MESSAGE, code)) {
    return BY_MESSAGE[code]?.find(([pattern]) => pattern.test(message))?.[1] ?? 'unknown';
  }
  if (status === 429) return 'throttled';
  if (status === 401 || status === 403) return 'denied';
  if (status === 409 || status === 412) return 'conflict';
  if (status === 408 || (status !== undefined && status >= 500)) return 'unavailable';
  // A 404 without ARM's own code (a proxy's, a missing subscription's) proves nothing about the resource.
  return 'unknown';
}

interface Thrown {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly statusCode?: unknown;
  readonly message?: unknown;
  readonly response?: { readonly headers?: { get(name: string): string | undefined } };
}

/** Anything that an SDK or the network threw, as a CloudError. After `signal` has ended the run it says no more than that. */
export function toCloudError(error: unknown, operation: string, signal?: AbortSignal): CloudError {
  if (error instanceof CloudError) return error;
  if (signal?.aborted) {
    return new CloudError({
      code: 'unavailable',
      nativeCode: 'Aborted',
      operation,
      message: 'ended before the answer',
      cause: error,
    });
  }
  const thrown = (typeof error === 'object' && error !== null ? error : {}) as Thrown;
  const name = text(thrown.name);
  const code = text(thrown.code);
  const message = text(thrown.message) ?? String(error);
  const status = typeof thrown.statusCode === 'number' ? thrown.statusCode : undefined;
  const retryAfterMs = thrown.response?.headers && retryAfterOf(thrown.response.headers);
  const nativeCode = code ?? (status !== undefined ? `HTTP ${status}` : (name ?? 'Error'));
  return new CloudError({
    code: localCode(name, code, status) ?? classify({ status, code, message }),
    nativeCode,
    operation,
    message,
    retryAfterMs,
    cause: error,
  });
}

function localCode(
  name: string | undefined,
  code: string | undefined,
  status: number | undefined,
): ErrorCode | undefined {
  if (name !== undefined && ABORTED.has(name)) return 'unavailable';
  if (name !== undefined && NO_CREDENTIAL.has(name)) return 'denied';
  if (code === 'PARSE_ERROR' || (status === undefined && code !== undefined && BROKEN.has(code))) return 'unavailable';
  return undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Milliseconds from Retry-After (seconds or an HTTP date, measured against the answer's own Date) or Azure's `-ms` forms. */
export function retryAfterOf(headers: { get(name: string): string | undefined }): number | undefined {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = Number(headers.get(name) ?? Number.NaN);
    if (ms >= 0) return ms;
  }
  const value = headers.get('retry-after');
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = Date.parse(value);
  const from = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(until) ? undefined : Math.max(0, until - from);
}

/** An answer that came, but lacks what it should have: it proves nothing. */
export function malformed(operation: string, message: string, nativeCode = 'MalformedAnswer'): CloudError {
  return new CloudError({ code: 'unavailable', nativeCode, operation, message });
}

/** Proof, by ARM's own words, that the thing asked for does not exist; its group may be gone with it. */
export function isGone(error: CloudError): boolean {
  return (
    error.code === 'gone' && (error.nativeCode === 'ResourceNotFound' || error.nativeCode === 'ResourceGroupNotFound')
  );
}
