import pMap from 'p-map';
import { describe, expect, it } from 'vitest';
import { parseArmId } from '../../shared/azure/arm-id.ts';
import { toDisk } from '../../shared/azure/disks.ts';
import type { Resource } from '../../shared/core/model.ts';
import { armError, diskBody, diskId } from './scripted.ts';
import { opened, ref, signal } from './support.ts';

function disk(name: string): Resource {
  const id = parseArmId(diskId(name));
  if (!id) throw new Error(name);
  return toDisk({ location: 'x' }, id);
}

const timed = async (work: () => Promise<unknown>) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

describe('the pace', () => {
  it('of deletes is 200 at once and ten a second after that', async () => {
    await using at = await opened(() => ({ status: 204 }));
    const names = Array.from({ length: 206 }, (_, index) => `d${index}`);
    const times: number[] = [];
    const start = performance.now();
    await pMap(
      names,
      async (name) => {
        await at.disks.delete(disk(name), signal());
        times.push(performance.now() - start);
      },
      { concurrency: at.scope.deleteConcurrency },
    );
    // Six more than fit: the last one has waited for six refills, less what came in while the burst went out.
    const atOnce = times[199] ?? Number.NaN;
    expect(times.at(-1)).toBeGreaterThan(Math.max(550, atOnce) - 1);
    expect(at.server.seen).toHaveLength(206);
  });

  it('of reads is left to the cloud until it says that few are left', async () => {
    let left = 249;
    await using at = await opened(() => ({
      body: diskBody('d'),
      headers: { 'x-ms-ratelimit-remaining-subscription-reads': String(left) },
    }));
    const read = () => at.disks.get([ref(diskId('d'))], signal());
    await read();
    expect(await timed(() => Promise.all(Array.from({ length: 12 }, read)))).toBeLessThan(300);
    left = 10;
    await read();
    expect(await timed(() => Promise.all(Array.from({ length: 12 }, read)))).toBeGreaterThan(350);
  });

  it('is held by one 429 for all of its kind', async () => {
    let first = true;
    await using at = await opened(() => {
      const throttled = first;
      first = false;
      return throttled
        ? { status: 429, headers: { 'retry-after': '9' }, body: armError('TooManyRequests') }
        : { status: 204 };
    });
    await at.disks.delete(disk('a'), signal());
    await at.disks.delete(disk('b'), signal());
    expect(at.clock.slept).toEqual([9000]);
    expect(at.scope.calls.counts()).toEqual({ Disks_Delete: 3 });
  });
});
