import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Report } from '../../shared/core/report.ts';
import { type AzureSimulator, startAzureSimulator } from '../../simulator/azure/server.ts';
import { World } from '../../simulator/world/world.ts';
import { MINUTE } from '../support/run.ts';

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts');

describe('gleaner on Azure', () => {
  let simulator: AzureSimulator;
  let lost: { readonly vm: string; readonly disks: readonly string[] };

  beforeAll(async () => {
    // The child's clock is the real one, so the estate must not be in its future.
    const world = new World({ start: new Date(Date.now() - 120 * MINUTE), ticking: true });
    simulator = await startAzureSimulator({ world });
    const sub = simulator.subscription();
    sub.casing = 'mixed';
    lost = sub.createVm('shoot--one-a');
    for (const name of ['b', 'c']) sub.createVm(`shoot--one-${name}`);
    sub.deleteVm(lost.vm);
    sub.deleteVm(`${sub.groupId('shoot--one')}/providers/Microsoft.Compute/virtualMachines/shoot--one-b`);
    world.advance(60 * MINUTE);
  });
  afterAll(() => simulator.close());

  function gleaner(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const env = { ...process.env, AZURE_RESOURCE_MANAGER_ENDPOINT: simulator.url, NO_COLOR: '1' };
    return new Promise((done) => {
      execFile(
        process.execPath,
        [MAIN, ...args, '--cloud', 'azure', '--ledger', 'memory'],
        { env },
        (error, stdout, stderr) => done({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
      );
    });
  }

  it('finds what one VM left that is gone: by its id, in any case, or by its name and group', async () => {
    const subscription = ['--subscription', simulator.subscription().id];
    for (const which of [
      ['--vm', lost.vm],
      ['--vm', lost.vm.toUpperCase(), ...subscription],
      ['--vm', 'SHOOT--one-A', '--resource-group', 'Shoot--One', ...subscription],
    ]) {
      const { code, stdout } = await gleaner('plan', ...which, '--json');
      const names = (JSON.parse(stdout) as Report).items.map(({ name }) => name).sort();
      expect({ code, names }).toEqual({
        code: 0,
        names: ['shoot--one-a-0-data-disk', 'shoot--one-a-nic', 'shoot--one-a-os-disk'],
      });
    }
    expect(simulator.world.writes()).toEqual([]);
  });

  it('explains by the id alone, which names its subscription', async () => {
    const { code, stdout } = await gleaner('explain', lost.disks[0] ?? '', '--json');
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { kind: 'disk', owner: { state: 'gone' } }]);
  });

  it('refuses a policy that asks for snapshots', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gleaner-azure-'));
    const policy = join(folder, 'policy.yaml');
    writeFileSync(policy, 'snapshot: before-delete\n');
    const { code, stderr } = await gleaner('plan', '--subscription', simulator.subscription().id, '--policy', policy);
    rmSync(folder, { recursive: true });
    expect([code, stderr]).toEqual([2, expect.stringContaining('policy.snapshot: managed-disk offers no snapshots')]);
  });
});
