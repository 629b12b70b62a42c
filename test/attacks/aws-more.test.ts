import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sweep } from '../../shared/core/engine.ts';
import { restore } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { parsePolicy } from '../../shared/core/policy.ts';
import { AT_ONCE, CNI, DEAD, enforce, MCM, MINUTE, SHOOT, Stage, vol } from './support.ts';

let s: Stage;
beforeEach(async () => {
  s = await Stage.start();
});
afterEach(() => s.close());
const DAY = 24 * 60 * MINUTE;

describe('policy values at their edge', () => {
  it.each(['99999999d', '999999999999999d'])('E1 grace %s (never) is not no grace at all', async (grace) => {
    let policy: object;
    try {
      parsePolicy({ grace });
      policy = { grace, minAge: '0' };
    } catch {
      return; // refused: fine
    }
    const id = s.region.createVolume({ tags: MCM('a') });
    await s.run(policy);
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it.each(['99999999d', '999999999999999d'])('E1b minAge %s is not no age at all', async (minAge) => {
    try {
      parsePolicy({ minAge });
    } catch {
      return;
    }
    const id = s.region.createVolume({ tags: MCM('a') });
    await s.run({ grace: '0', minAge });
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it.each(['99999999d', '999999999999999d'])('E2 retention %s (for ever) keeps the record', async (retention) => {
    try {
      parsePolicy({ retention });
    } catch {
      return;
    }
    const id = s.region.createVolume({ tags: MCM('a') });
    await s.run({ ...AT_ONCE, retention });
    const gone = s.region.volumes.get(id) === undefined;
    const records = await Array.fromAsync(new Ledger(s.store).tombstones());
    expect({ gone, records: records.length }).not.toEqual({ gone: true, records: 0 });
  });
  it.each(['99999999d', '999999999999999d'])('E3 breaker.hold %s: what an event found is held back', async (hold) => {
    try {
      parsePolicy({ breaker: { hold } });
    } catch {
      return;
    }
    const policy = { ...AT_ONCE, breaker: { hold } };
    const vms = Array.from({ length: 25 }, (_, i) => s.region.run({ name: `vm-${i}` }));
    for (const vm of vms) await s.event('started', vm);
    const enis = vms.map((vm) => s.region.createEni({ tags: { [CNI]: vm } }));
    for (const vm of vms) s.region.terminate(vm);
    const report = await s.run(policy);
    expect(report.stoppedBy).toBe('breaker');
    await s.reap([{ key: `aws:us-east-1:${enis[0]}`, id: enis[0] as string, type: 'ec2-network-interface' }], policy);
    expect(s.deletes()).toEqual([]);
  });
});

describe('breaker', () => {
  const known = async (n: number, of: string) => {
    for (let i = 0; i < n; i += 1) {
      const vm = s.region.run({ name: `${of}-${i}` });
      await s.event('started', vm);
    }
    return [...s.region.instances.all()]
      .filter(({ Tags }) => Tags?.[0]?.Value?.startsWith(of))
      .map(({ InstanceId = '' }) => InstanceId);
  };
  it('B0 30 known owners, all free things, EC2 answers with an empty list: trips', async () => {
    for (const vm of await known(30, 'now')) s.region.createEni({ tags: { [CNI]: vm } });
    s.region.instances.lagMs = 0;
    for (const { InstanceId = '' } of Array.from(s.region.instances.all()))
      s.region.instances.set(InstanceId, undefined);
    const report = await s.run();
    expect(report.stoppedBy).toBe('breaker');
    expect(s.deletes()).toEqual([]);
  });
});

describe('claims, longer', () => {
  it.each(['Gleaner-Keep', 'GLEANER-KEEP', 'gleaner-keep '])(
    'C7 the opt-out as a person may type it: %s',
    async (key) => {
      const id = s.region.createVolume({ tags: { 'gleaner-owner': DEAD, [key]: 'yes' } });
      await s.run();
      expect(s.region.volumes.get(id)).toBeDefined();
    },
  );
  it('D13 restored from the Recycle Bin by a person: the next sweep does not delete it again', async () => {
    s.region.recycleBin = true;
    const id = s.region.createVolume({ tags: MCM('a') });
    await s.run();
    expect(s.region.bin.has(id)).toBe(true);
    const { scopes } = await (
      s.engine().cloud as never as { open(r: object, sig: AbortSignal): Promise<{ scopes: never[] }> }
    ).open({}, enforce.signal);
    await restore(new Ledger(s.store), scopes, id, enforce.signal);
    expect(s.region.volumes.get(id)).toBeDefined();
    s.world.advance(MINUTE);
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('C8 Gardener PV: cluster tag only, the owner named by nothing: kept', async () => {
    s.region.createVolume({ tags: { [SHOOT]: '1', Name: 'pv' } });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('C9 terraform default_tags carry kubernetes.io/cluster/x: the data disk of a pet attached to a node, node replaced', async () => {
    const data = s.region.createVolume({ tags: { 'kubernetes.io/cluster/x': 'owned', Name: 'data', team: 'db' } });
    s.world.advance(30 * DAY);
    const node = s.region.run({ tags: { 'kubernetes.io/cluster/x': 'owned', Name: 'node' } });
    s.world.advance(DAY);
    s.region.attachVolume(data, node);
    await s.event('deleting', node);
    s.region.terminate(node);
    s.world.advance(6 * MINUTE);
    await s.run({});
    s.world.advance(31 * MINUTE);
    await s.run({});
    expect(s.region.volumes.get(data)).toBeDefined();
  });
});

describe('two at once, endings', () => {
  it('T1 reap of the same batch twice at once: one record each', async () => {
    const ids = Array.from({ length: 20 }, () => s.region.createVolume({ tags: MCM('a') }));
    await Promise.all([s.reap(ids.map(vol)), s.reap(ids.map(vol))]);
    const records = await Array.fromAsync(new Ledger(s.store).tombstones());
    expect(records.map(({ id }) => id).sort()).toEqual([...ids].sort());
  });
  it('T2 ends in mid reap (after the delete, before the record): the next plan writes nothing, the next run completes', async () => {
    const ids = Array.from({ length: 3 }, () => s.region.createVolume({ tags: MCM('a') }));
    const dying = { ...s.store, put: s.store.put.bind(s.store) } as never as typeof s.store;
    const store = new Proxy(s.store, {
      get: (target, name) => {
        if (name === 'put')
          return (key: { partition: string }, ...rest: never[]) =>
            key.partition === 'tombstone'
              ? new Promise(() => {})
              : (target.put as never as (...a: unknown[]) => unknown)(key, ...rest);
        const value = (target as never as Record<string | symbol, unknown>)[name];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    void dying;
    void sweep(s.engine(AT_ONCE, store), 'sweep', {}, enforce);
    while (s.deletes().length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
    await sweep(s.engine(), 'plan', {}, enforce);
    expect(await Array.fromAsync(new Ledger(s.store).tombstones())).toHaveLength(0);
    await s.run({ ...AT_ONCE, kinds: ['nic'] });
    expect((await Array.fromAsync(new Ledger(s.store).tombstones())).map(({ id }) => id).sort()).toEqual(
      [...ids].sort(),
    );
  });
});
