import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CNI, DEAD, MCM, MINUTE, Stage, vol } from './support.ts';

let s: Stage;
beforeEach(async () => {
  s = await Stage.start();
});
afterEach(() => s.close());

describe('the grace starts anew after use (case 36)', () => {
  it('M1 with policy.clusters set: used for days between two orphan lives, deleted 1 minute after the detach', async () => {
    const policy = { clusters: ['shoot'], minAge: '0' };
    const id = s.region.createVolume({ tags: MCM('dead') });
    await s.run(policy); // marks it
    s.world.advance(5 * MINUTE);
    const user = s.region.run({ name: 'replacement' });
    s.region.attachVolume(id, user);
    for (let day = 0; day < 5; day += 1) {
      s.world.advance(24 * 60 * MINUTE);
      await s.run(policy); // sees it in use, or rather does not see it
    }
    s.region.detach(id); // the living replacement lets go for a moment (remount, resize)
    s.world.advance(MINUTE);
    await s.run(policy);
    expect(s.deletes()).toEqual([]);
  });

  it('M2 the other type cannot be listed: marks of this one are never cleared', async () => {
    const policy = { minAge: '0' };
    s.simulator.denied.add('DescribeNetworkInterfaces');
    const id = s.region.createVolume({ tags: MCM('dead') });
    await s.run(policy);
    s.world.advance(5 * MINUTE);
    const user = s.region.run({ name: 'replacement' });
    s.region.attachVolume(id, user);
    for (let day = 0; day < 5; day += 1) {
      s.world.advance(24 * 60 * MINUTE);
      await s.run(policy);
    }
    s.region.detach(id);
    s.world.advance(MINUTE);
    await s.run(policy);
    expect(s.deletes()).toEqual([]);
  });

  it('M4 snapshot before-delete: the snapshot of an earlier life is taken for this one (policy.clusters)', async () => {
    const policy = { clusters: ['shoot'], minAge: '0', grace: '0', snapshot: 'before-delete' as const };
    const id = s.region.createVolume({ tags: MCM('dead') });
    await s.run(policy); // snapshot begins
    s.region.attachVolume(id, s.region.run({ name: 'replacement' }));
    s.world.advance(24 * 60 * MINUTE); // a day of writes
    await s.run(policy);
    s.region.detach(id);
    s.world.advance(MINUTE);
    const before = s.world.now();
    await s.run(policy);
    const gone = s.region.volumes.get(id) === undefined;
    const fresh = [...s.region.snapshots.all()].some(({ StartTime }) => (StartTime ?? 0) >= before);
    expect({ gone, fresh }).not.toEqual({ gone: true, fresh: false });
  });

  it('M5 a reap message sees it in use: the mark goes', async () => {
    const policy = { minAge: '0' };
    const id = s.region.createVolume({ tags: MCM('dead') });
    await s.run(policy);
    const user = s.region.run({ name: 'x' });
    s.region.attachVolume(id, user);
    s.world.advance(31 * MINUTE);
    await s.reap([vol(id)], policy);
    s.region.detach(id);
    s.world.advance(MINUTE);
    await s.reap([vol(id)], policy);
    expect(s.deletes()).toEqual([]);
  });

  it('M6 ENI seen attaching only: the mark stays though it was used', async () => {
    const id = s.region.createEni({ tags: { [CNI]: DEAD } });
    await s.run({ minAge: '0' });
    s.world.advance(MINUTE);
    await s.run({ minAge: '0' });
    s.world.advance(40 * MINUTE);
    expect(s.region.enis.get(id)).toBeDefined();
  });
});
