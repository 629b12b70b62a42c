import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import type { OwnerRef, Resource } from '../../shared/core/model.ts';
import { type CloudScope, ownerKey, type ResourceType } from '../../shared/core/ports.ts';
import { awsEnvironment, motoMissing } from '../support/moto.ts';
import { type Estate, onMoto, simulated } from './estate.ts';

const { signal } = new AbortController();
const MISSING_VOLUME = 'vol-00000000000000000';
const NEVER = 'i-00000000000000000';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
const CNI = 'node.k8s.amazonaws.com/instance_id';
const filter = { ownerTags: ['gleaner-owner'] };

/** One suite on a server that we did not write and on ours: what holds on both, holds. */
function contract(name: string, open: () => Promise<Estate>): void {
  describe(`AWS adapters on ${name}`, () => {
    let estate: Estate;
    let scope: CloudScope;
    const typeOf = (kind: 'disk' | 'nic') => scope.types.find((type) => type.kind === kind) as ResourceType;
    const listed = async (kind: 'disk' | 'nic') =>
      (await Array.fromAsync(typeOf(kind).list(filter, signal))).flat().map(({ id }) => id);
    const find = async (kind: 'disk' | 'nic', vm: object) => {
      const identity = { id: NEVER, place: 'us-east-1', claimed: [], ...vm };
      return (await typeOf(kind).find(identity, signal)).map(({ id }) => id);
    };
    const claim = (id: string, kind: 'disk' | 'nic') => ({ key: `aws:us-east-1:${id}`, id, kind });

    beforeAll(async () => {
      estate = await open();
      Object.assign(process.env, awsEnvironment(estate.url));
    });
    afterAll(() => estate.stop());
    const fresh = async () => {
      scope = (await aws({ region: 'us-east-1' }).open({}, signal)).scopes[0] as CloudScope;
    };

    it('lists what is free and carries a tag of ours, and nothing else', async () => {
      await fresh();
      const machine = await estate.volume(MCM('m-list'));
      const owned = await estate.volume({ 'gleaner-owner': 'x' });
      const foreign = await estate.volume({ Name: 'x', team: 'y' });
      const bare = await estate.volume({});
      const eni = await estate.eni({ [CNI]: NEVER }, `aws-K8S-${NEVER}`);
      const other = await estate.eni({ team: 'y' });
      const disks = await listed('disk');
      expect(disks).toEqual(expect.arrayContaining([machine, owned]));
      for (const id of [foreign, bare]) expect(disks).not.toContain(id);
      const nics = await listed('nic');
      expect(nics).toContain(eni);
      expect(nics).not.toContain(other);
    });

    it('reads by id: found with its facts, or gone, however many', async () => {
      await fresh();
      const id = await estate.volume(MCM('m-get'));
      const items = [claim(id, 'disk'), claim(MISSING_VOLUME, 'disk')];
      const reads = await typeOf('disk').get(items, signal);
      expect(reads.get(`aws:us-east-1:${id}`)).toMatchObject({
        status: 'found',
        resource: {
          id,
          kind: 'disk',
          name: 'm-get',
          state: 'free',
          attachedTo: [],
          holds: [],
          sizeGiB: 20,
          tags: MCM('m-get'),
        },
      });
      expect(reads.get(`aws:us-east-1:${MISSING_VOLUME}`)).toEqual({ status: 'gone' });
      const many = Array.from({ length: 450 }, (_, index) => claim(`vol-${String(index).padStart(17, '0')}`, 'disk'));
      const before = scope.calls.counts().DescribeVolumes ?? 0;
      const gone = await typeOf('disk').get(many, signal);
      expect(gone.size).toBe(450);
      expect((scope.calls.counts().DescribeVolumes ?? 0) - before).toBe(3);
    });

    it('finds what a VM left: by claim, by name, by the CNI tag', async () => {
      await fresh();
      const volume = await estate.volume(MCM('m-find'));
      const eni = await estate.eni({ [CNI]: 'i-0aaaaaaaaaaaaaaa1' });
      const named = await estate.eni(MCM('m-find'));
      expect(await find('disk', { claimed: [claim(volume, 'disk')] })).toEqual([volume]);
      expect(await find('disk', { name: 'm-find' })).toEqual([volume]);
      expect(await find('nic', { id: 'i-0aaaaaaaaaaaaaaa1' })).toEqual([eni]);
      expect(await find('nic', { id: 'i-0aaaaaaaaaaaaaaa2', name: 'm-find', tags: MCM('m-find') })).toEqual([named]);
      expect(await find('disk', { name: 'm-*' })).toEqual([]);
    });

    it('answers about owners by id and by name: alive with its attachments, terminated, never there', async () => {
      await fresh();
      const alive = await estate.run(MCM('m-alive'));
      const dead = await estate.run(MCM('m-dead'));
      await estate.run(MCM('m-twice'));
      await estate.run(MCM('m-twice'));
      await estate.terminate(dead);
      const refs: OwnerRef[] = [
        ...[alive, dead, NEVER].map((value) => ({ by: 'id' as const, value, place: 'us-east-1' })),
        ...['m-alive', 'm-dead', 'm-never', 'm-twice'].map((value) => ({
          by: 'name' as const,
          value,
          place: 'us-east-1',
        })),
        { by: 'id', value: alive, place: 'eu-west-1' },
      ];
      const answers = await scope.owners.lookup(refs, signal);
      const states = refs.map((ref) => answers.get(ownerKey(ref))?.state);
      expect(states).toEqual(['alive', 'gone', 'gone', 'alive', 'gone', 'gone', 'alive', 'unknown']);
      const found = answers.get(ownerKey(refs[0] as OwnerRef));
      expect(found).toMatchObject({ id: alive, name: 'm-alive', vm: { key: `aws:us-east-1:${alive}` } });
      expect(found?.vm?.attachments.some(({ kind }) => kind === 'disk')).toBe(true);
      expect(await scope.owners.read({ id: dead, place: 'us-east-1' }, signal)).toMatchObject({
        state: 'gone',
        name: 'm-dead',
      });
      expect(await scope.owners.read({ id: NEVER, place: 'us-east-1' }, signal)).toBeUndefined();
      expect(scope.calls.counts().DescribeInstances).toBe(4);
    });

    it('deletes, and takes what is gone already for done', async () => {
      await fresh();
      for (const [kind, id] of [
        ['disk', await estate.volume(MCM('m-del'))],
        ['nic', await estate.eni({ [CNI]: NEVER })],
      ] as const) {
        const type = typeOf(kind);
        const read = (await type.get([claim(id, kind)], signal)).get(`aws:us-east-1:${id}`) as { resource: Resource };
        await type.delete(read.resource, signal);
        expect((await type.get([claim(id, kind)], signal)).get(`aws:us-east-1:${id}`)).toEqual({ status: 'gone' });
        await type.delete(read.resource, signal);
      }
    });

    it('offers all regions, and refuses one that does not exist', async () => {
      const { scopes } = await aws({ region: 'us-east-1' }).open({ regions: ['all'] }, signal);
      expect(scopes.map(({ id }) => id)).toEqual(expect.arrayContaining(['aws:us-east-1', 'aws:eu-west-1']));
      await expect(aws({ region: 'us-east-1' }).open({ regions: ['mars-1'] }, signal)).rejects.toThrow(
        /^region: mars-1/,
      );
    });
  });
}

contract('the simulator', simulated);
if (motoMissing() === undefined) contract('moto', onMoto);
