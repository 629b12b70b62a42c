import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import type { OwnerAnswer, OwnerRef } from '../../shared/core/model.ts';
import { type CloudScope, ownerKey, type ScopeRequest } from '../../shared/core/ports.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { REGION, scopeOn, signal } from './scripted.ts';

const SHOOT = 'kubernetes.io/cluster/shoot';
const CAPA = 'sigs.k8s.io/cluster-api-provider-aws/cluster/c';
const MCM = { [SHOOT]: '1', 'kubernetes.io/role/node': '1' };

let simulator: AwsSimulator;
let scope: CloudScope;
beforeAll(async () => {
  simulator = await startAwsSimulator();
});
beforeEach(async () => {
  scope = await scopeOn(simulator.url);
});
afterAll(() => simulator.close());

const run = (name: string | undefined, tags: Record<string, string> = {}) => simulator.region().run({ name, tags });
const named = (value: string, clusterTag?: string): OwnerRef => ({ by: 'name', value, place: REGION, clusterTag });
const byId = (value: string): OwnerRef => ({ by: 'id', value, place: REGION });
async function answer(ref: OwnerRef): Promise<OwnerAnswer | undefined> {
  return (await scope.owners.lookup([ref], signal())).get(ownerKey(ref));
}

describe('the owner by name', () => {
  it('is of the same cluster, or of none that it tells: its tags may be late', async () => {
    run('late');
    run('elsewhere', { 'kubernetes.io/cluster/other': '1' });
    run('here', MCM);
    expect(await answer(named('late', SHOOT))).toMatchObject({ state: 'alive' });
    expect(await answer(named('elsewhere', SHOOT))).toMatchObject({ state: 'gone' });
    expect(await answer(named('here', SHOOT))).toMatchObject({ state: 'alive', matches: 1 });
    // An owner tag names no cluster: then any machine of that name counts.
    expect(await answer(named('elsewhere'))).toMatchObject({ state: 'alive' });
  });

  it('is compared with its case', async () => {
    run('Machine', MCM);
    expect(await answer(named('machine', SHOOT))).toMatchObject({ state: 'gone' });
  });

  it('that fits several: alive if one is, unknown if none is', async () => {
    const region = simulator.region();
    const ids = [run('twice', MCM), run('twice', MCM)];
    region.terminate(ids[0] as string);
    expect(await answer(named('twice', SHOOT))).toMatchObject({ state: 'alive', id: ids[1], matches: 2 });
    region.terminate(ids[1] as string);
    expect(await answer(named('twice', SHOOT))).toMatchObject({ state: 'unknown', matches: 2 });
  });

  it('of Cluster API is looked for under the Machine’s name as well', async () => {
    run('aws-machine-1', { [CAPA]: 'owned', MachineName: 'default/machine-1' });
    expect(await answer(named('machine-1', CAPA))).toMatchObject({ state: 'alive', name: 'aws-machine-1' });
    expect(await answer(named('chine-1', CAPA))).toMatchObject({ state: 'gone' });
    expect(await answer(named('machine-1', SHOOT))).toMatchObject({ state: 'gone' });
  });

  it('with a wildcard, or with nothing in it, is not asked for', async () => {
    for (const value of ['m-*', 'm?', '', 'a\\b'])
      expect(await answer(named(value))).toMatchObject({ state: 'unknown' });
    expect(scope.calls.counts()).toEqual({});
  });
});

describe('the owner by id', () => {
  it('while it shuts down is alive; terminated, or forgotten, it is gone', async () => {
    const id = run('short-lived', MCM);
    simulator.region().terminate(id, { shuttingDownMs: 60_000 });
    expect(await answer(byId(id))).toMatchObject({ state: 'alive', detail: 'shutting-down' });
    simulator.world.advance(61_000);
    expect(await answer(byId(id))).toMatchObject({ state: 'gone', detail: 'terminated' });
    simulator.world.advance(2 * 3_600_000);
    expect(await answer(byId(id))).toMatchObject({ state: 'gone', detail: 'absent from a complete answer' });
  });

  it('has no case, and one that is none proves nothing', async () => {
    const id = run('case', MCM);
    expect(await answer(byId(id.toUpperCase()))).toMatchObject({ state: 'alive', id });
    expect(await answer(byId('i-x'))).toMatchObject({ state: 'unknown' });
  });

  it('shows what hangs on it', async () => {
    const id = simulator.region().run({ name: 'full', volumes: [{}, {}], enis: [{}] });
    const found = await answer(byId(id));
    expect(found?.vm?.attachments.map(({ kind }) => kind)).toEqual(['nic', 'disk', 'disk']);
    expect(found?.vm?.attachments.every(({ key, id: native }) => key === `aws:${REGION}:${native}`)).toBe(true);
  });

  it('is asked 200 at a time, each once', async () => {
    const refs = Array.from({ length: 401 }, (_, index) => byId(`i-${String(index).padStart(17, '0')}`));
    const answers = await scope.owners.lookup([...refs, ...refs], signal());
    expect(answers.size).toBe(401);
    expect(scope.calls.counts()).toEqual({ DescribeInstances: 3 });
  });

  it('that a read has just found gone is not asked for again; a living one is', async () => {
    const dead = run('dead', MCM);
    simulator.region().terminate(dead);
    const alive = run('alive', MCM);
    expect(await scope.owners.read({ id: dead, place: REGION }, signal())).toMatchObject({
      state: 'gone',
      name: 'dead',
    });
    await scope.owners.read({ id: alive, place: REGION }, signal());
    expect(await answer(byId(dead))).toMatchObject({ state: 'gone' });
    expect(scope.calls.counts()).toEqual({ DescribeInstances: 2 });
    expect(await answer(byId(alive))).toMatchObject({ state: 'alive' });
    expect(scope.calls.counts()).toEqual({ DescribeInstances: 3 });
  });

  it('given as a name is read where exactly one instance has it', async () => {
    const id = run('only-one', MCM);
    run('two', MCM);
    run('two', MCM);
    expect(await scope.owners.read({ id: 'only-one', place: '' }, signal())).toMatchObject({ id, state: 'alive' });
    expect(await scope.owners.read({ id: 'two', place: '' }, signal())).toBeUndefined();
  });
});

describe('the calls that a VM event takes to find what is left', () => {
  it.each([
    ['Gardener', MCM, ['DescribeInstances', 'DescribeNetworkInterfaces', 'DescribeVolumes']],
    [
      'EKS',
      { 'kubernetes.io/cluster/c': 'owned' },
      ['DescribeInstances', 'DescribeNetworkInterfaces', 'DescribeVolumes'],
    ],
  ])('%s: at most four, whatever was claimed', async (_, tags, operations) => {
    const id = run('m-1', tags as Record<string, string>);
    const claimed = [
      { key: 'aws:us-east-1:vol-00000000000000001', id: 'vol-00000000000000001', kind: 'disk' as const },
      { key: 'aws:us-east-1:eni-00000000000000001', id: 'eni-00000000000000001', kind: 'nic' as const },
    ];
    simulator.region().terminate(id);
    for (const known of [[], claimed]) {
      scope = await scopeOn(simulator.url);
      const vm = await scope.owners.read({ id, place: REGION }, signal());
      for (const type of scope.types)
        await type.find({ id, place: REGION, name: vm?.name, tags: vm?.tags, claimed: known }, signal());
      await scope.owners.lookup([byId(id)], signal());
      const counts = scope.calls.counts();
      expect(Object.keys(counts).sort()).toEqual(operations);
      expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(4);
    }
  });
});

describe('regions', () => {
  it('that the account has not opted in to are skipped and named', async () => {
    const { scopes, skipped } = await aws({ region: REGION }).open({ regions: ['all'] }, signal());
    expect(scopes.map(({ id }) => id)).toEqual(['aws:eu-central-1', 'aws:eu-west-1', 'aws:us-east-1']);
    expect(skipped).toEqual([{ scope: 'aws:af-south-1', reason: 'this account has not opted in to the region' }]);
    expect(scopes[0]?.calls.counts()).toEqual({ DescribeRegions: 1 });
  });

  it('are refused where AWS has none of that name, and so is what only another cloud has', async () => {
    const cloud = aws({ region: REGION });
    const unknown = cloud.open({ regions: ['mars-1'] }, signal());
    await expect(unknown).rejects.toMatchObject({ name: 'InputError', field: 'region' });
    await expect(cloud.open({ subscriptions: ['s'] }, signal())).rejects.toMatchObject({ field: 'subscription' });
    await expect(cloud.open({ scopeIds: ['azure:s'] }, signal())).rejects.toMatchObject({ field: 'scopeId' });
  });

  it('of a deployment are all that it can be asked for', async () => {
    const cloud = aws({ region: REGION, regions: [REGION, 'eu-west-1'] });
    const ids = async (request: ScopeRequest) => (await cloud.open(request, signal())).scopes.map(({ id }) => id);
    expect(await ids({})).toEqual([`aws:${REGION}`, 'aws:eu-west-1']);
    expect(await ids({ regions: ['all'] })).toEqual([`aws:${REGION}`, 'aws:eu-west-1']);
    expect(await ids({ regions: ['eu-west-1'] })).toEqual(['aws:eu-west-1']);
    const foreign = cloud.open({ regions: ['eu-west-1', 'eu-central-1'] }, signal());
    await expect(foreign).rejects.toMatchObject({ name: 'InputError', field: 'region' });
    expect(await cloud.open({ scopeIds: ['aws:eu-central-1', 'aws:eu-west-1'] }, signal())).toMatchObject({
      scopes: [{ id: 'aws:eu-west-1' }],
      skipped: [{ scope: 'aws:eu-central-1', reason: 'not a region of this deployment' }],
    });
    const everywhere = await aws({ region: REGION, regions: ['all'] }).open({}, signal());
    expect(everywhere.scopes.length).toBe(3);
  });

  it('are apart: an instance of one proves nothing in another', async () => {
    const id = run('here-only', MCM);
    const { scopes } = await aws({ region: REGION }).open({ scopeIds: ['aws:eu-west-1'] }, signal());
    const ref: OwnerRef = byId(id);
    const answers = await scopes[0]?.owners.lookup([ref], signal());
    expect(answers?.get(ownerKey(ref))).toMatchObject({ state: 'unknown' });
  });
});
