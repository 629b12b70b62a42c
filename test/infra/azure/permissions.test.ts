import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sweep } from '../../../shared/core/engine.ts';
import { explain } from '../../../shared/core/explain.ts';
import { SUBSCRIPTION } from '../../../simulator/azure/server.ts';
import { estate } from '../../azure/estate.ts';
import { deployed, roleActions } from '../../support/azure-role.ts';
import { enforce, MINUTE, observe } from '../../support/run.ts';
import { missing } from './support.ts';

const READS = [
  'Microsoft.Compute/disks/read',
  'Microsoft.Compute/locations/*/read',
  'Microsoft.Compute/virtualMachines/read',
  'Microsoft.Network/locations/*/read',
  'Microsoft.Network/networkInterfaces/read',
  'Microsoft.ResourceGraph/resources/read',
];
const DELETES = ['Microsoft.Compute/disks/delete', 'Microsoft.Network/networkInterfaces/delete'];
const all = { subscriptions: [SUBSCRIPTION] };

/** Every request of sweeps of a subscription and of a group, of VM events and of what they lead to, by the action it takes. */
async function actionsOf(mode: 'observe' | 'enforce'): Promise<string[]> {
  await using at = await estate({ grace: '0', minAge: '0', settle: '0' });
  const call = mode === 'enforce' ? enforce : observe;
  const { queue: _, ...engine } = at.engine;
  const one = at.sub.createVm('shoot--one-7', { dataDisks: 1 });
  at.sub.createVm('shoot--one-8');
  at.world.advance(60 * MINUTE);
  at.deliveries.length = 0;
  at.sub.deleteVm(one.vm);
  // Its NIC is reserved for three minutes.
  at.world.advance(5 * MINUTE);
  await explain(engine, one.nic, all, call);
  for (const request of [{ ...all, resourceGroup: 'shoot--one' }, all]) {
    for (let round = 0; round < 2; round += 1) {
      const { report } = await sweep(engine, 'sweep', request, call);
      expect(report.errors).toEqual([]);
      at.world.advance(60 * MINUTE);
    }
  }
  await at.handleEvents();
  return [...new Set(at.world.requests.map(({ operation }) => operation))].toSorted();
}

describe.skipIf(missing !== undefined)('the role on Azure', () => {
  it('reads in either mode, and holds the two deletions in enforce only', () => {
    expect(roleActions('observe')).toEqual(READS);
    expect(roleActions('enforce')).toEqual([...READS, ...DELETES].toSorted());
  });

  it.each(['observe', 'enforce'] as const)(
    'in %s allows every request that is sent, and nothing beyond',
    async (mode) => {
      const allowed = roleActions(mode).map((action) => ({
        action,
        pattern: new RegExp(`^${action.replaceAll('.', '\\.').replaceAll('*', '.+')}$`, 'i'),
      }));
      const sent = await actionsOf(mode);
      expect(sent.length).toBeGreaterThan(3);
      expect(sent.filter((one) => !allowed.some(({ pattern }) => pattern.test(one)))).toEqual([]);
      // In observe nothing is deleted, so no deletion is followed; both rights are harmless reads.
      const idle = mode === 'observe' ? READS.filter((one) => one.includes('/locations/')) : [];
      expect(
        allowed.filter(({ pattern }) => !sent.some((one) => pattern.test(one))).map(({ action }) => action),
      ).toEqual(idle);
    },
  );

  it('is assigned at the subscription, or at the named resource groups and no further', () => {
    const assignedAt = (resourceGroups: string[]) => {
      const resources = deployed({ mode: 'enforce', resourceGroups });
      const deleting = resources.find(({ properties }) => JSON.stringify(properties ?? {}).includes(DELETES[0] ?? ''));
      return resources
        .filter(({ properties }) => properties?.roleDefinitionId === deleting?.id)
        .map(({ id }) => id.split('/providers/')[0]?.split('/').slice(3).join('/'));
    };
    expect(assignedAt([])).toEqual(['']);
    expect(assignedAt(['shoot--one', 'shoot--two'])).toEqual([
      'resourceGroups/shoot--one',
      'resourceGroups/shoot--two',
    ]);
  });

  it('is what docs/azure.md says, row by row', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/azure.md'), 'utf8');
    const rows = (page.split('\n## Permissions\n')[1]?.split('\n## ')[0] ?? '')
      .split('\n')
      .map((row) => row.split(' | ')[0] ?? '');
    const named = rows.flatMap((cell) => [...cell.matchAll(/`(Microsoft\.[^`]+)`/g)].map((match) => match[1] ?? ''));
    expect([...new Set(named)].toSorted()).toEqual(roleActions('enforce'));
  });
});
