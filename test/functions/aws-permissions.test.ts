import { Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deploy } from '../infra/aws/support.ts';
import { ACTIONS_OF_SERVICES, allowedActions, policyAllows } from '../support/iam.ts';
import { motoMissing } from '../support/moto.ts';
import { AwsStage, type FunctionName } from './aws-stage.ts';

const CNI = 'node.k8s.amazonaws.com/instance_id';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
const ROLES: Readonly<Record<FunctionName, string>> = {
  'vm-event': 'DeciderRole',
  schedule: 'DeciderRole',
  reap: 'DeleterRole',
  invoke: 'DeleterRole',
};
const POLICY = { grace: '0', minAge: '0', settle: '0', snapshot: 'before-delete' } as const;
const REGIONS = ['us-east-1', 'eu-west-1'];

/**
 * What the functions called, held against what their roles may call: each call is allowed, and no action is allowed that
 * nobody calls. The bundles run everything that they can do once.
 */
describe.skipIf(motoMissing())('permissions of the AWS functions', () => {
  let stage: AwsStage;
  const template = Template.fromStack(deploy({ mode: 'enforce', regions: REGIONS, policy: POLICY }).stack);

  beforeAll(async () => {
    stage = await AwsStage.start();
    await everything(stage);
  });
  afterAll(() => stage.stop());

  const madeBy = (role: string) =>
    new Set([...stage.calls].flatMap(([name, calls]) => (ROLES[name] === role ? [...calls] : [])));

  it.each(['DeciderRole', 'DeleterRole'])('%s: every call that was made is allowed', (role) => {
    const made = [...madeBy(role)];
    expect(made.length).toBeGreaterThan(8);
    const tags = { 'kubernetes.io/role/node': '1', [CNI]: 'i-1' };
    const refused = made.filter((action) => !policyAllows(template, role, action, tags, contextOf(action)));
    expect(refused).toEqual([]);
  });

  it.each(['DeciderRole', 'DeleterRole'])('%s: no action is allowed that nobody calls', (role) => {
    const made = madeBy(role);
    const idle = allowedActions(template, role).filter(
      (action) => !made.has(action) && !ACTIONS_OF_SERVICES.includes(action),
    );
    expect(idle).toEqual([]);
  });

  it('never lets the functions that decide delete', () => {
    expect(
      allowedActions(template, 'DeciderRole').filter((action) =>
        /:(Delete(Volume|NetworkInterface)|Terminate|Detach|Modify)/.test(action),
      ),
    ).toEqual([]);
    expect([...madeBy('DeciderRole')].filter((action) => /^ec2:(?!Describe)/.test(action))).toEqual([]);
  });
});

/** What IAM knows of a call beside its action: tags are set together with a snapshot, notices carry our name. */
function contextOf(action: string): object {
  if (action === 'ec2:CreateTags') return { context: { 'ec2:CreateAction': 'CreateSnapshot' } };
  return action === 'events:PutEvents' ? { context: { 'events:source': 'gleaner' } } : {};
}

async function everything(stage: AwsStage): Promise<void> {
  const region = stage.simulator.region();
  region.busyMs = 0;
  region.snapshotMs = 0;
  region.groups.set('g1', { arns: [] });
  // Marked at first sight, in use again: the mark goes.
  await stage.deploy({ ...POLICY, grace: '1h' }, { GLEANER_REGIONS: 'us-east-1' });
  const reused = region.createEni({ tags: { [CNI]: 'i-00000000000000000' } });
  await stage.call('schedule', {});
  region.changeEni(reused, { Status: 'in-use' });
  await stage.call('schedule', {});
  await stage.deploy(POLICY, { GLEANER_REGIONS: REGIONS.join(',') });
  const vm = region.run({
    name: 'node-1',
    tags: MCM('node-1'),
    volumes: [{ tags: MCM('node-1') }],
    enis: [{ tags: MCM('node-1') }],
  });
  await stage.deliver();
  stage.simulator.world.advance(3000);
  region.terminate(vm);
  // An event whose VM cannot be read is put back for a while.
  const fault = { kind: 'error', status: 503, code: 'RequestLimitExceeded', message: 'later' } as const;
  stage.simulator.world.faults.inject('DescribeInstances', fault, { times: 5 });
  await stage.pump('events', 'vm-event', 1);
  stage.simulator.world.faults.clear();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const lost = region.createVolume({ tags: MCM('lost') });
  const busy = region.createEni({ tags: { [CNI]: 'i-00000000000000000' } });
  await stage.call('schedule', {});
  await stage.pump('work', 'schedule');
  await stage.pump('reap', 'reap');
  await stage.pump('reap', 'reap');
  for (const id of [lost, busy]) region.volumes.set(id, undefined);
  // The last try fails: what is given up goes to the dead-letter queue.
  const eni = region.createEni({ tags: { [CNI]: 'i-00000000000000000' } });
  region.busyUntilMs.set(eni, Date.now() + 3_600_000);
  const work = { kind: 'reap', runId: 'r', scopeId: 'aws:us-east-1', notBefore: new Date(0).toISOString(), attempt: 7 };
  await stage.send(
    'reap',
    JSON.stringify({ ...work, items: [{ key: `aws:us-east-1:${eni}`, id: eni, type: 'ec2-network-interface' }] }),
  );
  await stage.pump('reap', 'reap');
  for (const action of ['plan', 'sweep']) await stage.call('invoke', { action, scope: { resourceGroup: 'g1' } });
  region.createVolume({ tags: MCM('by-hand') });
  await stage.call('invoke', { action: 'sweep', scope: { region: 'us-east-1' } });
  await stage.call('invoke', { action: 'sweep', scope: { region: 'us-east-1' } });
  await stage.call('invoke', { action: 'history' });
}
