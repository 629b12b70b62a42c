import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Report, reportItemSchema, reportSchema } from '../../shared/core/report.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts');
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
const AT_ONCE = ['--grace', '0', '--min-age', '0'];

/** script(1) of util-linux gives a child a terminal of its own. */
function noTerminal(): boolean {
  const probe = spawnSync('script', ['--version'], { encoding: 'utf8' });
  const there = probe.stdout?.includes('util-linux') ?? false;
  if (!there) console.warn('skipped: the question on a terminal needs script(1) of util-linux');
  return !there;
}

describe('gleaner', () => {
  let simulator: AwsSimulator;
  let folder: string;
  const ledger = () => `sqlite:${join(folder, 'ledger.db')}`;

  beforeAll(async () => {
    // The child's clock is the real one, so the estate must not be in its future.
    simulator = await startAwsSimulator({
      world: new World({ start: new Date(Date.now() - 3_600_000), ticking: true }),
    });
  });
  afterAll(() => simulator.close());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gleaner-cli-'));
    simulator.world.requests.length = 0;
    simulator.world.faults.clear();
    const region = simulator.region();
    for (const { VolumeId = '' } of region.volumes.all()) region.volumes.set(VolumeId, undefined);
    for (const { NetworkInterfaceId = '' } of region.enis.all()) region.enis.set(NetworkInterfaceId, undefined);
    return () => rmSync(folder, { recursive: true });
  });

  async function gleaner(
    args: readonly string[],
    { env = {}, input }: { env?: Record<string, string | undefined>; input?: string } = {},
  ) {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...process.env, ...awsEnvironment(simulator.url), XDG_STATE_HOME: folder, NO_COLOR: '1', ...env },
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (data) => {
      output.stdout += String(data);
    });
    child.stderr.on('data', (data) => {
      output.stderr += String(data);
    });
    child.stdin.end(input);
    const code = await new Promise<number>((done) => child.once('close', (status) => done(status ?? -1)));
    return { code, ...output };
  }
  const sweep = (...more: string[]) =>
    gleaner(['sweep', '--cloud', 'aws', '--region', 'us-east-1', '--ledger', ledger(), ...more]);
  const reportOf = ({ stdout }: { stdout: string }): Report => reportSchema.parse(JSON.parse(stdout));

  it('plans without writing anything anywhere, not even an empty ledger', async () => {
    const id = simulator.region().createVolume({ tags: MCM('gone') });
    const result = await gleaner(['plan', '--cloud', 'aws', '--region', 'us-east-1', ...AT_ONCE, '--json']);
    expect(result.code).toBe(0);
    expect(reportOf(result)).toMatchObject({
      verb: 'plan',
      mode: 'observe',
      scope: { regions: ['us-east-1'] },
      complete: true,
      counts: { listed: 1, reap: 1, deleted: 0 },
      calls: { DescribeVolumes: 1, DescribeNetworkInterfaces: 1, DescribeInstances: 1 },
      items: [
        {
          id,
          cloud: 'aws',
          kind: 'disk',
          verdict: 'reap',
          reason: 'orphan',
          outcome: 'would-delete',
          owner: { state: 'gone' },
        },
      ],
    });
    expect(simulator.world.writes()).toEqual([]);
    expect(existsSync(join(folder, 'gleaner'))).toBe(false);
  });

  it('observes by default, marks, and deletes nothing', async () => {
    simulator.region().createVolume({ tags: MCM('gone') });
    const report = reportOf(await sweep(...AT_ONCE, '--json'));
    expect(report).toMatchObject({ mode: 'observe', counts: { reap: 1, deleted: 0 } });
    expect(simulator.world.writes()).toEqual([]);
  });

  it('remembers the first sighting between runs, and deletes after the grace', async () => {
    const id = simulator.region().createVolume({ tags: MCM('gone') });
    const args = ['--mode', 'enforce', '--yes', '--json', '--min-age', '0', '--grace', '2s'];
    expect(reportOf(await sweep(...args)).items).toMatchObject([
      { verdict: 'wait', reason: 'in-grace', dueAt: expect.any(String) },
    ]);
    await new Promise((done) => setTimeout(done, 2000));
    expect(reportOf(await sweep(...args))).toMatchObject({
      counts: { deleted: 1 },
      items: [{ id, outcome: 'deleted' }],
    });
    const history = JSON.parse((await gleaner(['history', '--ledger', ledger(), '--json'])).stdout);
    expect(history.items).toMatchObject([
      { id, outcome: 'deleted', at: expect.any(String), runId: expect.any(String) },
    ]);
    expect((await gleaner(['history', '--ledger', ledger()])).stdout).toContain(id);
  });

  it('exits 1 when an item failed or a listing was incomplete, and 3 when the budget stopped it', async () => {
    const region = simulator.region();
    for (let index = 0; index < 3; index += 1) region.createVolume({ tags: MCM(`gone-${index}`) });
    const args = [...AT_ONCE, '--mode', 'enforce', '--yes', '--json'];
    simulator.world.faults.inject('DescribeNetworkInterfaces', {
      kind: 'error',
      status: 403,
      code: 'UnauthorizedOperation',
      message: 'no',
    });
    const incomplete = await sweep(...args, '--budget', '1');
    expect(incomplete.code).toBe(3);
    expect(reportOf(incomplete)).toMatchObject({
      complete: false,
      stoppedBy: 'budget',
      errors: [{ code: 'UnauthorizedOperation', operation: 'DescribeNetworkInterfaces' }],
      counts: { deleted: 1, deferred: 2 },
    });
    simulator.world.faults.inject(
      'DeleteVolume',
      { kind: 'error', status: 400, code: 'DependencyViolation', message: 'no' },
      { times: 1 },
    );
    const failed = await sweep(...args);
    expect(failed.code).toBe(1);
    expect(reportOf(failed).counts).toMatchObject({ deleted: 1, failed: 1 });
  });

  it('explains one resource, with when it would go', async () => {
    const id = simulator.region().createVolume({ tags: MCM('gone') });
    const result = await gleaner([
      'explain',
      id,
      '--cloud',
      'aws',
      '--region',
      'us-east-1',
      '--ledger',
      ledger(),
      '--json',
    ]);
    const item = reportItemSchema.parse(JSON.parse(result.stdout));
    expect(item).toMatchObject({ id, verdict: 'wait', reason: 'in-grace', dueAt: expect.any(String), outcome: 'none' });
    const text = await gleaner(['explain', id, '--cloud', 'aws', '--ledger', 'memory']);
    expect(text.stdout).toMatch(/wait: in-grace[\s\S]*gardener-mcm[\s\S]*would go at/);
    const missing = await gleaner(['explain', 'vol-00000000000000000', '--cloud', 'aws', '--ledger', 'memory']);
    expect(missing).toMatchObject({ code: 2, stdout: '' });
  });

  it('snapshots before it deletes when the policy says so, and restores from it with the tags', async () => {
    const region = simulator.region();
    region.snapshotMs = 1000;
    const id = region.createVolume({ tags: { ...MCM('gone'), team: 'blue' }, sizeGiB: 33, type: 'gp2' });
    const policy = join(folder, 'policy.yaml');
    writeFileSync(policy, 'grace: "0"\nminAge: "0"\nsnapshot: before-delete\n');
    const args = ['--policy', policy, '--mode', 'enforce', '--yes', '--json'];
    expect(reportOf(await sweep(...args)).items).toMatchObject([{ id, outcome: 'deferred' }]);
    await new Promise((done) => setTimeout(done, 1100));
    expect(reportOf(await sweep(...args)).items).toMatchObject([{ id, outcome: 'deleted' }]);
    const restored = await gleaner([
      'restore',
      id,
      '--cloud',
      'aws',
      '--region',
      'us-east-1',
      '--ledger',
      ledger(),
      '--json',
    ]);
    expect(restored.code).toBe(0);
    const answer = JSON.parse(restored.stdout);
    expect(answer).toMatchObject({ id, from: 'snapshot' });
    expect(region.volumes.get(answer.restored)).toMatchObject({
      Size: 33,
      VolumeType: 'gp2',
      AvailabilityZone: 'us-east-1a',
    });
    expect(region.volumes.get(answer.restored)?.Tags).toContainEqual({ Key: 'team', Value: 'blue' });
    const after = reportOf(await sweep(...args));
    expect(after.items).toMatchObject([{ id: answer.restored, verdict: 'keep', reason: 'opted-out' }]);
    for (const memory of ['memory', 'sqlite::memory:']) {
      const forgetful = await gleaner(['sweep', '--cloud', 'aws', '--ledger', memory, ...args]);
      expect([forgetful.code, forgetful.stderr]).toEqual([2, expect.stringContaining('--ledger: memory forgets')]);
    }
    expect(await gleaner(['restore', 'vol-0123', '--cloud', 'aws', '--ledger', ledger()])).toMatchObject({ code: 2 });
  });

  it('waits for what the cloud wants later, for as long as it is told', async () => {
    const region = simulator.region();
    const id = region.createEni({ tags: { 'node.k8s.amazonaws.com/instance_id': 'i-00000000000000000' } });
    const busy = 'Network interface is currently in use.';
    simulator.world.faults.inject(
      'DeleteNetworkInterface',
      { kind: 'error', status: 400, code: 'InvalidParameterValue', message: busy },
      { times: 1 },
    );
    const soon = reportOf(await sweep(...AT_ONCE, '--mode', 'enforce', '--yes', '--json', '--wait', '1s'));
    expect(soon.items).toMatchObject([{ id, outcome: 'deferred' }]);
    expect(region.enis.get(id)).toBeDefined();
  });

  it('prints a table, what is kept by reason, and what comes next', async () => {
    const region = simulator.region();
    const id = region.createVolume({ tags: MCM('gone') });
    region.createVolume({ tags: { ...MCM('gone'), 'gleaner-keep': 'yes' } });
    const { stdout, stderr, code } = await sweep(...AT_ONCE);
    expect(code).toBe(0);
    expect(stdout).toContain(id);
    expect(stdout).toContain('kept: 1 opted-out');
    expect(stdout).toContain('--mode enforce deletes these');
    expect(stdout).not.toContain('\u001b[');
    expect(stderr).toBe('');
  });

  const aws = ['--cloud', 'aws', '--region', 'us-east-1'];
  it.each<[string[], RegExp]>([
    [['sweep'], /--cloud/],
    [['sweep', '--cloud', 'mars'], /--cloud.*mars/],
    [['sweep', ...aws, '--mode', 'delete'], /--mode.*delete/],
    [['sweep', ...aws, '--grace', ''], /grace must not be empty/],
    [['sweep', ...aws, '--grace', '30'], /--grace: "30" is no duration/],
    [['sweep', ...aws, '--min-age', '-1m'], /--min-age/],
    [['sweep', ...aws, '--budget', 'many'], /budget must be a whole number/],
    [['sweep', ...aws, '--budget', ''], /budget/],
    [['sweep', ...aws, '--cluster', ''], /cluster must not be empty/],
    [['sweep', ...aws, '--resource-group', ' '], /resource-group must not be empty/],
    [['sweep', ...aws, '--subscription', 's'], /--subscription: belongs to Azure/],
    [['sweep', '--cloud', 'azure', '--region', 'r'], /--region: belongs to AWS/],
    [['sweep', '--cloud', 'azure'], /--subscription: is needed/],
    [['sweep', '--cloud', 'azure', '--subscription', 's', '--vm', 'v'], /--vm: needs --resource-group/],
    [['sweep', '--cloud', 'aws', '--region', 'us-east-1,'], /--region: .* has an empty part/],
    [['sweep', '--cloud', 'aws', '--region', 'mars-1'], /^error: --region: mars-1 is no region/],
    [['sweep', ...aws, '--ledger', 'paper:x'], /--ledger: "paper:x"/],
    [['sweep', ...aws, '--policy', '/nowhere.yaml'], /--policy: .*nowhere/],
    [['sweep', ...aws, '--colour'], /--colour/],
    [['sweep', ...aws, '--mode', 'enforce'], /--yes: is needed/],
    [['explain', 'i-0123456789abcdef0', '--cloud', 'aws'], /id: i-0123456789abcdef0 is no id/],
    [['explain', '--cloud', 'aws'], /id/],
    [['destroy'], /destroy/],
    [['history', '--limit', '0x10'], /limit must be a whole number/],
    [['history', '--ledger', `sqlite:${MAIN}`], /^error: --ledger: .*not a database/],
    [['plan', ...aws, '--ledger', `sqlite:${MAIN}`], /^error: --ledger: .*not a database/],
    [['history', '--ledger', 'sqlite:/nowhere/ledger.db'], /^error: --ledger: \/nowhere\/ledger.db does not exist/],
    [['restore', 'vol-0123', ...aws, '--ledger', 'sqlite:/nowhere/l.db'], /^error: --ledger: .* does not exist/],
    [['sweep', ...aws, '--grace', '99999999999d'], /^error: --grace: "99999999999d" is no duration/],
  ])('%j: exit 2, names what is wrong, touches nothing', async (args, message) => {
    simulator.region().createVolume({ tags: MCM('gone') });
    const { code, stdout, stderr } = await gleaner(args);
    expect(stderr).toMatch(message);
    expect([code, stdout]).toEqual([2, '']);
    expect(simulator.world.writes()).toEqual([]);
  });

  it.each([
    ['exclude:\n  - tagg: x\n', /^error: policy\.exclude\.0\.tagg: unknown key\n$/],
    [
      'exclude:\n  - name: *golden\n',
      /^error: policy: Unresolved alias.*golden \(a value that begins with \* needs quotes\)\n$/,
    ],
    ['grace: 30\n', /^error: policy\.grace: must be a duration such as 90s, 30m, 1h30m or 0/],
    ['grace: 100000000d\n', /^error: policy\.grace: must be a duration .* at most 3650d/],
    ['retention: 0\n', /^error: policy\.retention: must be at least 1d/],
    ['grace: [30m\n', /^error: policy: /],
    ['- grace\n', /^error: policy/],
  ])('names what is wrong in the policy %j', async (text, message) => {
    const policy = join(folder, 'policy.yaml');
    writeFileSync(policy, text);
    const { code, stdout, stderr } = await sweep('--policy', policy);
    expect(stderr).toMatch(message);
    expect([code, stdout]).toEqual([2, '']);
  });

  it('says that a first plan remembers nothing, and what does', async () => {
    simulator.region().createVolume({ tags: MCM('gone') });
    const { code, stdout, stderr } = await gleaner(['plan', ...aws, '--ledger', ledger(), '--min-age', '0']);
    expect(stderr).toMatch(/^note: .*ledger\.db does not exist \(yet\): no earlier sighting is known\n$/);
    expect(stdout).toContain('next: gleaner sweep remembers what it sees');
    expect(code).toBe(0);
  });

  it('looks in the region of the profile where nothing names one, and says where it looked', async () => {
    const config = join(folder, 'config');
    writeFileSync(config, '[default]\nregion = eu-west-1\n');
    const env = { AWS_REGION: undefined, AWS_CONFIG_FILE: config };
    const { stdout } = await gleaner(['plan', '--cloud', 'aws', '--ledger', 'memory', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({ scope: { regions: ['eu-west-1'] }, complete: true });
  });

  it('explains by the times that it is given', async () => {
    const id = simulator.region().createVolume({ tags: MCM('gone') });
    const explain = async (...more: string[]) =>
      JSON.parse((await gleaner(['explain', id, ...aws, '--ledger', 'memory', '--json', ...more])).stdout);
    expect(await explain()).toMatchObject({ verdict: 'wait' });
    expect(await explain(...AT_ONCE)).toMatchObject({ verdict: 'reap', outcome: 'would-delete' });
  });

  it.skipIf(noTerminal())('asks on a terminal before it deletes, and takes only yes for yes', async () => {
    const id = simulator.region().createVolume({ tags: MCM('gone') });
    const ask = async (answer: string) => {
      // script(1) gives the child a terminal of its own.
      const command = [
        process.execPath,
        MAIN,
        'sweep',
        ...aws,
        ...AT_ONCE,
        '--mode',
        'enforce',
        '--ledger',
        ledger(),
      ].join(' ');
      const child = spawn('script', ['-qefc', command, '/dev/null'], {
        env: { ...process.env, ...awsEnvironment(simulator.url), NO_COLOR: '1' },
      });
      let seen = '';
      let answered = false;
      child.stdout.on('data', (data) => {
        seen += String(data);
        if (!answered && seen.includes('Type yes: ')) {
          answered = true;
          child.stdin.end(`${answer}\n`);
        }
      });
      await new Promise((done) => child.once('close', done));
      return seen;
    };
    expect(await ask('y')).toContain('nothing deleted');
    expect(simulator.region().volumes.get(id)).toBeDefined();
    const seen = await ask('yes');
    expect(seen).toContain('Delete 1 network interfaces and disks?');
    expect(simulator.region().volumes.get(id)).toBeUndefined();
  });

  it('plays the demo to its end, every claim of it true', async () => {
    const { code, stdout } = await gleaner(['demo']);
    expect(stdout).toContain('All as told.');
    expect(stdout).not.toContain('NOT SO');
    expect(code).toBe(0);
  });
});
