import { GetQueueAttributesCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import type { Context } from 'aws-lambda';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Report, reportSchema } from '../../shared/core/report.ts';
import type { AwsSimulator } from '../../simulator/aws/server.ts';
import { motoMissing } from '../support/moto.ts';
import { AwsStage } from './aws-stage.ts';

const CNI = 'node.k8s.amazonaws.com/instance_id';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });

const POLICY = { grace: '0', minAge: '0', settle: '0' };

describe.skipIf(motoMissing())('AWS functions, as bundles', () => {
  let stage: AwsStage;
  let simulator: AwsSimulator;

  beforeAll(async () => {
    stage = await AwsStage.start();
    simulator = stage.simulator;
    await stage.deploy(POLICY);
  });
  afterAll(() => stage.stop());
  beforeEach(() => {
    simulator.region().busyMs = 0;
    simulator.world.requests.length = 0;
  });

  /** Events tell whole seconds only: what is to be older than its VM's death is made some seconds before. */
  const later = () => simulator.world.advance(3000);
  const deletes = () => simulator.world.writes().map(({ target, status }) => `${target} ${status}`);
  const invoke = (body: unknown) => stage.call('invoke', body);

  it('from the event over claims to the deletion: the VM was seen, died, and left what no tag attributes', async () => {
    const region = simulator.region();
    const karpenter = { 'karpenter.sh/nodepool': 'default', 'kubernetes.io/cluster/c': 'owned' };
    const vm = region.run({
      name: 'node-1',
      tags: karpenter,
      volumes: [{ tags: karpenter }],
      enis: [{ tags: karpenter }],
    });
    const neighbour = region.run({ name: 'node-2', tags: karpenter, volumes: [{ tags: karpenter }] });
    await stage.deliver();
    const left = [...region.volumes.all(), ...region.enis.all()].filter((one) => JSON.stringify(one).includes(vm));
    later();
    region.terminate(vm);
    await stage.deliver();
    const ids = left.map((one) =>
      'VolumeId' in one ? one.VolumeId : (one as { NetworkInterfaceId: string }).NetworkInterfaceId,
    );
    expect(deletes().sort()).toEqual(ids.map((id) => `${id} 200`).sort());
    expect([...region.volumes.all()].every((one) => one.Attachments?.[0]?.InstanceId === neighbour)).toBe(true);
    const { items } = (await invoke({ action: 'history' })) as { items: { id: string; owner: { evidence: string } }[] };
    expect(items.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    expect(items[0]?.owner.evidence).toBe('claim');
    later();
    region.terminate(neighbour);
    await stage.deliver();
  });

  it('takes at most 4 + k calls for an event that left k things', async () => {
    const region = simulator.region();
    const vm = region.run({
      name: 'node-k',
      tags: MCM('node-k'),
      volumes: [{ tags: MCM('node-k') }, { tags: MCM('node-k') }],
      enis: [{ tags: MCM('node-k') }],
    });
    await stage.deliver();
    later();
    region.terminate(vm);
    simulator.world.requests.length = 0;
    await stage.pump('events', 'vm-event');
    expect(simulator.world.requests.length).toBeLessThanOrEqual(4 + 3);
    expect(simulator.world.writes()).toEqual([]);
    simulator.world.requests.length = 0;
    await stage.pump('reap', 'reap');
    expect(deletes()).toHaveLength(3);
    expect(simulator.world.requests.length).toBeLessThanOrEqual(4 + 3);
  });

  it('acts once on a doubled event, and lets a late one find nothing', async () => {
    const region = simulator.region();
    const vm = region.run({ enis: [] });
    const eni = region.createEni({ tags: { [CNI]: vm } });
    simulator.events.faults.delaysMs = ({ state }) => (state === 'terminated' ? [0, 0] : [0]);
    later();
    region.terminate(vm);
    simulator.events.faults.delaysMs = undefined;
    await stage.deliver();
    expect(deletes()).toEqual([`${eni} 200`]);
    simulator.events.emit({
      region: 'us-east-1',
      instanceId: vm,
      state: 'terminated',
      time: new Date(Date.now() - 7_200_000),
    });
    await stage.deliver();
    expect(deletes()).toEqual([`${eni} 200`]);
    const { items } = (await invoke({ action: 'history' })) as { items: { id: string }[] };
    expect(items.filter(({ id }) => id === eni)).toHaveLength(1);
  });

  it('comes back later where EC2 says in use, and deletes then', async () => {
    const region = simulator.region();
    const vm = region.run();
    const eni = region.createEni({ tags: { [CNI]: vm }, description: `aws-K8S-${vm}` });
    region.busyUntilMs.set(eni, Date.now() + 7_200_000);
    later();
    region.terminate(vm);
    await stage.deliver();
    expect(deletes()).toEqual([`${eni} 400`]);
    // Put back with the delay that the error calls for, so nothing is visible now.
    const attributes = await stage.sqs.send(
      new GetQueueAttributesCommand({
        QueueUrl: stage.urls.reap,
        AttributeNames: ['ApproximateNumberOfMessagesDelayed'],
      }),
    );
    expect(attributes.Attributes?.ApproximateNumberOfMessagesDelayed).toBe('1');
    region.busyUntilMs.delete(eni);
    const work = {
      kind: 'reap',
      runId: 'again',
      scopeId: 'aws:us-east-1',
      notBefore: new Date().toISOString(),
      attempt: 1,
    };
    const items = [{ key: `aws:us-east-1:${eni}`, id: eni, type: 'ec2-network-interface' }];
    await stage.send('reap', JSON.stringify({ ...work, items }));
    await stage.pump('reap', 'reap');
    expect(region.enis.get(eni)).toBeUndefined();
  });

  it('sends a poison message to the dead-letter queue, and works on its neighbours', async () => {
    const region = simulator.region();
    const vm = region.run();
    const eni = region.createEni({ tags: { [CNI]: vm } });
    await stage.deliver();
    const bad = ['no json', '{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{}}'];
    for (const body of bad) await stage.send('events', body);
    later();
    region.terminate(vm);
    await stage.pump('events', 'vm-event');
    for (let tries = 0; tries < 3; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1200));
      await stage.pump('events', 'vm-event', 1);
    }
    await stage.pump('reap', 'reap');
    expect(region.enis.get(eni)).toBeUndefined();
    const { Messages = [] } = await stage.sqs.send(
      new ReceiveMessageCommand({ QueueUrl: stage.urls.dead, MaxNumberOfMessages: 10 }),
    );
    expect(Messages.map(({ Body = '' }) => Body).sort()).toEqual([...bad].sort());
  });

  it('sweeps what events never told of, by handing it to the function that deletes', async () => {
    const region = simulator.region();
    const volumes = Array.from({ length: 250 }, (_, index) => region.createVolume({ tags: MCM(`lost-${index}`) }));
    const report = reportSchema.parse(await stage.call('schedule', {}));
    expect(report).toMatchObject({ verb: 'sweep', mode: 'enforce', complete: true, stoppedBy: 'budget' });
    expect(report.counts).toMatchObject({ listed: 250, reap: 250, deferred: 250, deleted: 0 });
    expect(simulator.world.writes()).toEqual([]);
    await stage.pump('reap', 'reap');
    expect(volumes.filter((id) => region.volumes.get(id) === undefined)).toHaveLength(200);
    for (const id of volumes) region.volumes.set(id, undefined);
  });

  it('sweeps, plans and explains by hand, by region, cluster, VM and resource group', async () => {
    const region = simulator.region();
    const mine = region.createVolume({ tags: MCM('hand-1') });
    const other = region.createVolume({
      tags: { ...MCM('hand-2'), 'kubernetes.io/cluster/shoot': '0', 'kubernetes.io/cluster/two': '1' },
    });
    region.groups.set('g1', { arns: [region.arn('volume', mine)] });
    region.groups.set('broken', {
      arns: [],
      queryErrors: [{ ErrorCode: 'CLOUDFORMATION_STACK_INACTIVE', Message: 'gone' }],
    });
    const planned = reportSchema.parse(await invoke({ action: 'plan', scope: { region: 'us-east-1' } }));
    expect(planned.items.map(({ id, outcome }) => `${id} ${outcome}`).sort()).toEqual(
      [`${mine} would-delete`, `${other} would-delete`].sort(),
    );
    const inTwo = (await invoke({ action: 'plan', scope: { cluster: 'two' } })) as Report;
    expect(inTwo.items.filter(({ verdict }) => verdict === 'reap').map(({ id }) => id)).toEqual([other]);
    const broken = (await invoke({ action: 'sweep', scope: { resourceGroup: 'broken' } })) as Report;
    expect(broken).toMatchObject({ complete: false, counts: { deleted: 0 } });
    const explained = (await invoke({ action: 'explain', id: mine })) as { item: Report['items'][0] };
    expect(explained.item).toMatchObject({ id: mine, verdict: 'reap', reason: 'orphan' });
    expect(simulator.world.writes()).toEqual([]);
    const swept = (await invoke({ action: 'sweep', scope: { resourceGroup: 'g1' } })) as Report;
    expect(swept.items).toMatchObject([{ id: mine, outcome: 'deleted' }]);
    region.volumes.set(other, undefined);
  });

  it.each([
    [{}, /^body\.action/],
    [{ action: 'destroy' }, /^body\.action/],
    [{ action: 'sweep', scope: { resourcegroup: 'x' } }, /^body\.scope\.resourcegroup: unknown key/],
    [{ action: 'sweep', scope: { cluster: '' } }, /^body\.scope\.cluster: must not be empty/],
    [{ action: 'sweep', mode: 'delete' }, /^body\.mode/],
    [{ action: 'sweep', scope: { subscription: 's' } }, /^subscription: /],
    [
      { action: 'sweep', scope: { region: ['us-east-1', 'eu-west-1'] } },
      /^region: eu-west-1 is not one of this deployment/,
    ],
    [{ action: 'explain', id: 'vol-0123456789abcdef0', scope: { region: 'eu-west-1' } }, /^region: eu-west-1/],
    [{ action: 'explain', id: 'i-0123456789abcdef0' }, /^id: /],
    ['sweep', /^body/],
  ])('refuses %j, naming the field, and touches nothing', async (body, message) => {
    await expect(invoke(body)).rejects.toThrow(message);
    expect(simulator.world.writes()).toEqual([]);
  });

  it('cannot be talked out of the clusters that its policy names', async () => {
    await stage.deploy({ ...POLICY, clusters: ['shoot'] });
    try {
      const region = simulator.region();
      const id = region.createVolume({ tags: { ...MCM('b1'), 'kubernetes.io/cluster/blue': '1' } });
      const blue = invoke({ action: 'sweep', scope: { cluster: 'blue' } });
      await expect(blue).rejects.toThrow(/^cluster: blue is none of the policy's clusters/);
      expect(region.volumes.get(id)).toBeDefined();
      region.volumes.set(id, undefined);
    } finally {
      await stage.deploy(POLICY);
    }
  });

  it('stops well before its time limit, and hands back the rest', async () => {
    const region = simulator.region();
    const ids = Array.from({ length: 3 }, (_, index) => region.createVolume({ tags: MCM(`slow-${index}`) }));
    const short = { getRemainingTimeInMillis: () => 10_000 } as Context;
    const report = (await stage.call('schedule', {}, short)) as Report;
    expect(report).toMatchObject({ stoppedBy: 'time', complete: false });
    expect(simulator.world.writes()).toEqual([]);
    await stage.pump('work', 'schedule');
    await stage.pump('reap', 'reap');
    expect(ids.every((id) => region.volumes.get(id) === undefined)).toBe(true);
  });
});
