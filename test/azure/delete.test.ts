import { describe, expect, it } from 'vitest';
import { parseArmId } from '../../shared/azure/arm-id.ts';
import { toDisk } from '../../shared/azure/disks.ts';
import type { Resource } from '../../shared/core/model.ts';
import { armError, diskBody, diskId, nicBody, nicId, SUBSCRIPTION } from './scripted.ts';
import { opened, ref, signal } from './support.ts';

const resource = (id: string): Resource => ({
  ...toDisk({ location: 'x' }, parseArmId(id) as NonNullable<ReturnType<typeof parseArmId>>),
  ...ref(id),
});
const DISK = resource(diskId('vm-7-os-disk'));
const NIC = resource(nicId('vm-7-nic'));
const diskPoll = (origin: string) =>
  `${origin}/subscriptions/${SUBSCRIPTION}/providers/Microsoft.Compute/locations/westeurope/DiskOperations/op-1?p=1&api-version=2026-03-02`;

describe('a deletion', () => {
  it.each([200, 204])('is done on %s', async (status) => {
    await using at = await opened(() => ({ status }));
    await at.disks.delete(DISK, signal());
    expect(at.scope.calls.counts()).toEqual({ Disks_Delete: 1 });
  });

  it.each(['ResourceNotFound', 'ResourceGroupNotFound'])('of what is already gone (%s) is success', async (code) => {
    await using at = await opened(() => ({ status: 404, body: armError(code) }));
    await at.nics.delete(NIC, signal());
    expect(at.server.seen.map(({ method }) => method)).toEqual(['DELETE']);
  });

  it('is followed until its status says Succeeded, at the pace that the server asks for', async () => {
    let polls = 0;
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE')
        return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin), 'retry-after': '3' } };
      polls += 1;
      return {
        status: 200,
        body: { status: polls < 3 ? 'InProgress' : 'Succeeded' },
        headers: polls === 1 ? { 'retry-after': '7' } : {},
      };
    });
    await at.disks.delete(DISK, signal());
    expect(at.clock.slept).toEqual([3000, 7000, 7000]);
    expect(at.scope.calls.counts()).toEqual({ Disks_Delete: 1, Disks_Poll: 3 });
  });

  it('is followed by Location where there is no status document', async () => {
    let polls = 0;
    await using at = await opened((request) => {
      const location = `/subscriptions/${SUBSCRIPTION}/providers/Microsoft.Network/locations/westeurope/operationResults/op-1?api-version=2026-01-01`;
      if (request.method === 'DELETE') return { status: 202, headers: { location } };
      polls += 1;
      return { status: polls < 2 ? 202 : 204 };
    });
    await at.nics.delete(NIC, signal());
    expect(at.scope.calls.counts()).toEqual({ NetworkInterfaces_Delete: 1, NetworkInterfaces_Poll: 2 });
  });

  it('that fails at its end has failed, with the code of its end', async () => {
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE')
        return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin), location: diskPoll(origin) } };
      return {
        status: 200,
        body: { status: 'Failed', error: { code: 'OperationNotAllowed', message: 'Disk d is attached to VM v.' } },
      };
    });
    await expect(at.disks.delete(DISK, signal())).rejects.toMatchObject({
      code: 'in-use',
      nativeCode: 'OperationNotAllowed',
      operation: 'Disks_Delete',
    });
  });

  it.each([
    ['is gone: done', false],
    ['is still there: failed', true],
  ])('whose operation found nothing is done only when the resource %s', async (_, stands) => {
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE') return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin) } };
      if (!request.path.includes('/disks/')) return { body: { status: 'Failed', ...armError('ResourceNotFound') } };
      return stands ? { body: diskBody('vm-7-os-disk') } : { status: 404, body: armError('ResourceNotFound') };
    });
    const done = at.disks.delete(DISK, signal());
    if (stands) await expect(done).rejects.toMatchObject({ code: 'unavailable', nativeCode: 'ResourceNotFound' });
    else expect(await done).toBeUndefined();
  });

  it('that was cancelled has failed, and may be tried again', async () => {
    await using at = await opened((request, origin) =>
      request.method === 'DELETE'
        ? { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin) } }
        : { status: 200, body: { status: 'Canceled' } },
    );
    await expect(at.disks.delete(DISK, signal())).rejects.toMatchObject({ code: 'conflict' });
  });

  it.each([
    ['a status document without a status', { status: 200, body: {} }],
    ['an empty answer', { status: 200 }],
    ['a poll that is not found', { status: 404, body: armError('NotFound') }],
  ])('whose end is unclear (%s) is settled by reading the resource: still there = failed', async (_, poll) => {
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE') return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin) } };
      return request.path.includes('/disks/') ? { body: diskBody('vm-7-os-disk') } : poll;
    });
    await expect(at.disks.delete(DISK, signal())).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('whose end is unclear is done when the resource is gone', async () => {
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE') return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin) } };
      return request.path.includes('/disks/') ? { status: 404, body: armError('ResourceNotFound') } : { status: 200 };
    });
    await at.disks.delete(DISK, signal());
    expect(at.scope.calls.counts()).toEqual({ Disks_Delete: 1, Disks_Poll: 1, Disks_Get: 1 });
  });

  it('accepted without an operation to follow is followed by reading until the resource is gone', async () => {
    let reads = 0;
    await using at = await opened((request) => {
      if (request.method === 'DELETE') return { status: 202 };
      reads += 1;
      return reads < 3 ? { body: nicBody('vm-7-nic') } : { status: 404, body: armError('ResourceNotFound') };
    });
    await at.nics.delete(NIC, signal());
    expect(reads).toBe(3);
  });

  it.each([
    [400, 'NicReservedForAnotherVm', 'Nic is reserved for 180 seconds. Reserved VM: x', 'reserved', 1],
    [409, 'ScopeLocked', 'locked', 'locked', 1],
    [403, 'DenyAssignmentAuthorizationFailed', 'denied', 'locked', 1],
    [403, 'AuthorizationFailed', 'denied', 'denied', 1],
    [404, 'SubscriptionNotFound', 'no', 'unknown', 1],
    [503, 'ServerTimeout', 'later', 'unavailable', 4],
  ])('answered %s %s comes back as its own kind', async (status, code, message, expected, requests) => {
    await using at = await opened(() => ({ status, body: armError(code, message) }));
    await expect(at.nics.delete(NIC, signal())).rejects.toMatchObject({
      name: 'CloudError',
      code: expected,
      nativeCode: code,
    });
    expect(at.scope.calls.counts()).toEqual({ NetworkInterfaces_Delete: requests });
  });

  it('waits out a short Retry-After, and hands a long one back', async () => {
    let tries = 0;
    await using short = await opened(() =>
      ++tries === 1 ? { status: 429, headers: { 'retry-after': '7' } } : { status: 204 },
    );
    await short.disks.delete(DISK, signal());
    expect(short.clock.slept).toContain(7000);
    await using long = await opened(() => ({ status: 429, headers: { 'retry-after': '90' } }));
    await expect(long.disks.delete(DISK, signal())).rejects.toMatchObject({ code: 'throttled', retryAfterMs: 90_000 });
    expect(long.scope.calls.counts()).toEqual({ Disks_Delete: 1 });
  });

  it('ends when the run does, without claiming anything', async () => {
    const controller = new AbortController();
    await using at = await opened((request, origin) => {
      if (request.method === 'DELETE') return { status: 202, headers: { 'azure-asyncoperation': diskPoll(origin) } };
      controller.abort(new Error('time is up'));
      return { status: 200, body: { status: 'InProgress' } };
    });
    await expect(at.disks.delete(DISK, controller.signal)).rejects.toMatchObject({
      code: 'unavailable',
      nativeCode: 'Aborted',
    });
  });

  it('never leaves its subscription', async () => {
    await using at = await opened(() => ({ status: 204 }));
    const foreign = resource(DISK.id.replace(SUBSCRIPTION, '99999999-2222-3333-4444-555555555555'));
    await expect(at.disks.delete(foreign, signal())).rejects.toMatchObject({ nativeCode: 'InvalidId' });
    await expect(at.disks.delete(NIC, signal())).rejects.toMatchObject({ nativeCode: 'InvalidId' });
    expect(at.server.seen).toEqual([]);
  });
});
