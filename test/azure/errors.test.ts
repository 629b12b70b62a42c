import { describe, expect, it } from 'vitest';
import { classify, isGone, retryAfterOf, toCloudError } from '../../shared/azure/errors.ts';
import { isRetryable } from '../../shared/core/errors.ts';

const headers = (entries: Record<string, string>) => ({ get: (name: string) => entries[name] });
const restError = (statusCode: number, code: string | undefined, message = '', extra: Record<string, string> = {}) =>
  Object.assign(new Error(message), { name: 'RestError', statusCode, code, response: { headers: headers(extra) } });

describe("Azure's error table", () => {
  it.each([
    [404, 'ResourceNotFound', '', 'gone'],
    [404, 'ResourceGroupNotFound', '', 'gone'],
    [404, 'SubscriptionNotFound', '', 'unknown'],
    [404, 'InvalidResourceType', '', 'unknown'],
    [404, undefined, 'Not Found', 'unknown'],
    [400, 'NicReservedForAnotherVm', 'is reserved for 180 seconds. Reserved VM: x', 'reserved'],
    [400, 'NicInUse', '', 'in-use'],
    [409, 'OperationNotAllowed', "Disk d is attached to VM '/subscriptions/…'.", 'in-use'],
    [409, 'OperationNotAllowed', 'Disk d is being used by VM v', 'in-use'],
    [409, 'OperationNotAllowed', 'Resource x is marked for deletion.', 'conflict'],
    [409, 'OperationNotAllowed', 'Something else altogether.', 'unknown'],
    [409, 'Conflict', '', 'conflict'],
    [409, 'AnotherOperationInProgress', '', 'conflict'],
    [429, 'RetryableErrorDueToAnotherOperation', '', 'conflict'],
    [409, 'ANewCode', '', 'conflict'],
    [429, 'TooManyRequests', '', 'throttled'],
    [429, 'RateLimiting', '', 'throttled'],
    [429, undefined, '', 'throttled'],
    [409, 'ScopeLocked', '', 'locked'],
    [403, 'DenyAssignmentAuthorizationFailed', '', 'locked'],
    [403, 'AuthorizationFailed', '', 'denied'],
    [403, 'ANewCode', '', 'denied'],
    [401, 'InvalidAuthenticationToken', '', 'denied'],
    [500, 'InternalServerError', '', 'unavailable'],
    [503, undefined, '', 'unavailable'],
    [408, undefined, '', 'unavailable'],
    [400, 'InvalidParameter', '', 'invalid'],
    [400, 'ANewCode', '', 'unknown'],
    [400, 'constructor', '', 'unknown'],
    // The structured code speaks before the text, whatever the text claims.
    [409, 'ScopeLocked', 'the disk is attached to a VM that is marked for deletion', 'locked'],
    [403, 'AuthorizationFailed', 'ResourceNotFound', 'denied'],
  ] as const)('%s %s %j is %s', (status, code, message, expected) => {
    expect(classify({ status, code, message })).toBe(expected);
    expect(toCloudError(restError(status, code, message), 'Disks_Delete')).toMatchObject({
      code: expected,
      operation: 'Disks_Delete',
      nativeCode: code ?? `HTTP ${status}`,
    });
  });

  it.each([
    ['REQUEST_SEND_ERROR', 'unavailable'],
    ['ECONNRESET', 'unavailable'],
    ['PARSE_ERROR', 'unavailable'],
  ])('a connection that broke (%s) is %s', (code, expected) => {
    expect(toCloudError(Object.assign(new Error('x'), { name: 'RestError', code }), 'x').code).toBe(expected);
  });

  it.each([
    ['AbortError', 'unavailable'],
    ['TimeoutError', 'unavailable'],
    ['CredentialUnavailableError', 'denied'],
    ['AggregateAuthenticationError', 'denied'],
    ['TypeError', 'unknown'],
  ])('a thrown %s is %s', (name, expected) => {
    expect(toCloudError(Object.assign(new Error('x'), { name }), 'x').code).toBe(expected);
    expect(toCloudError(undefined, 'x').code).toBe('unknown');
  });

  it('retries what a repetition may mend, and nothing else', () => {
    const codes = ['NicReservedForAnotherVm', 'NicInUse', 'Conflict', 'TooManyRequests', 'InternalServerError'];
    expect(codes.map((code) => isRetryable(classify({ code, message: '' })))).toEqual(codes.map(() => true));
    const terminal = [
      'ScopeLocked',
      'DenyAssignmentAuthorizationFailed',
      'AuthorizationFailed',
      'InvalidParameter',
      'ANewCode',
    ];
    expect(terminal.map((code) => isRetryable(classify({ code, message: '' })))).toEqual(terminal.map(() => false));
  });

  it('waits 200 s for a reserved NIC, and for what Retry-After asks when that is longer than usual', () => {
    expect(toCloudError(restError(400, 'NicReservedForAnotherVm', '', { 'retry-after': '5' }), 'x').retryAfterMs).toBe(
      200_000,
    );
    expect(toCloudError(restError(429, undefined, '', { 'retry-after': '240' }), 'x').retryAfterMs).toBe(240_000);
    expect(toCloudError(restError(429, undefined, '', { 'retry-after': '1' }), 'x').retryAfterMs).toBe(30_000);
  });

  it('reads Retry-After in each of its forms', () => {
    expect(retryAfterOf(headers({ 'retry-after': '17' }))).toBe(17_000);
    expect(retryAfterOf(headers({ 'retry-after-ms': '250', 'retry-after': '17' }))).toBe(250);
    expect(
      retryAfterOf(headers({ date: 'Tue, 01 Dec 2026 12:00:00 GMT', 'retry-after': 'Tue, 01 Dec 2026 12:01:30 GMT' })),
    ).toBe(90_000);
    expect(retryAfterOf(headers({ 'retry-after': 'soon' }))).toBeUndefined();
    expect(retryAfterOf(headers({}))).toBeUndefined();
  });

  it("takes only ARM's own words for proof that something is gone", () => {
    expect(isGone(toCloudError(restError(404, 'ResourceNotFound'), 'x'))).toBe(true);
    expect(isGone(toCloudError(restError(404, 'ResourceGroupNotFound'), 'x'))).toBe(true);
    expect(isGone(toCloudError(restError(404, 'SubscriptionNotFound'), 'x'))).toBe(false);
    expect(isGone(toCloudError(restError(404, undefined, 'ResourceNotFound'), 'x'))).toBe(false);
  });
});
