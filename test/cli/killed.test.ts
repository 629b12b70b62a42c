import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ReportItem } from '../../shared/core/report.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts');
const MCM = { 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' };
const ORPHANS = 60;

/** A process that gets no chance to say goodbye, with a ledger on a real disk. */
describe('a sweep that is killed', () => {
  let simulator: AwsSimulator;
  let folder: string;

  beforeEach(async () => {
    simulator = await startAwsSimulator({
      world: new World({ start: new Date(Date.now() - 3_600_000), ticking: true }),
    });
    simulator.world.latencyMs = 10;
    folder = mkdtempSync(join(tmpdir(), 'gleaner-killed-'));
    for (let i = 0; i < ORPHANS; i += 1) simulator.region().createVolume({ tags: { Name: `m-${i}`, ...MCM } });
  });
  afterEach(async () => {
    await simulator.close();
    rmSync(folder, { recursive: true });
  });

  function start(...args: string[]) {
    const ledger = ['--ledger', `sqlite:${join(folder, 'ledger.db')}`, '--json'];
    const child = spawn(process.execPath, [MAIN, ...args, ...ledger], {
      env: { ...process.env, ...awsEnvironment(simulator.url) },
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (data) => {
        output[name] += String(data);
      });
    }
    const closed = once(child, 'close') as Promise<[number | null, string | null]>;
    /** Its answer, once it has ended by itself and well. */
    const answer = async () => {
      const [code] = await closed;
      expect({ code, stderr: output.stderr }).toMatchObject({ code: 0 });
      return JSON.parse(output.stdout) as unknown;
    };
    return { child, closed, answer };
  }
  const sweep = () => start('sweep', '--cloud', 'aws', '--mode', 'enforce', '--grace', '0', '--min-age', '0', '--yes');
  const deleted = () =>
    simulator.world.writes().filter(({ operation, status }) => operation === 'DeleteVolume' && status === 200);

  it.each([1, 10, 30])('after %i deletions is finished by the next one, with one record for each', async (count) => {
    const { child, closed } = sweep();
    while (deleted().length < count && child.exitCode === null) await sleep(1);
    child.kill('SIGKILL');
    expect((await closed)[1]).toBe('SIGKILL');
    expect(deleted().length).toBeLessThan(ORPHANS);
    expect(await sweep().answer()).toMatchObject({ complete: true, counts: { failed: 0, deferred: 0 } });
    const gone = deleted().map(({ target }) => target);
    expect(new Set(gone).size).toBe(ORPHANS);
    const { items } = (await start('history').answer()) as { items: ReportItem[] };
    expect(items.map(({ id }) => id).sort()).toEqual(gone.sort());
  });
});
