import { ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AwsStage, type QueueName } from '../functions/aws-stage.ts';
import { motoMissing } from '../support/moto.ts';
import { CNI, DEAD, MCM } from './support.ts';

const POLICY = { mode: 'enforce', grace: '0', minAge: '0', settle: '0' };
describe.skipIf(motoMissing())('the bundles', () => {
  let stage: AwsStage;
  beforeAll(async () => {
    stage = await AwsStage.start();
    await stage.deploy(POLICY);
  });
  afterAll(() => stage?.stop());
  const deletes = () => stage.simulator.world.writes().filter(({ operation }) => operation.startsWith('Delete'));
  const event = (region: string, id: string, over: object = {}) => ({
    version: '0',
    id: crypto.randomUUID(),
    'detail-type': 'EC2 Instance State-change Notification',
    source: 'aws.ec2',
    account: '123456789012',
    time: new Date(Date.now() - 3_700_000).toISOString(),
    region,
    detail: { 'instance-id': id, state: 'terminated' },
    ...over,
  });
  const left = async (queue: QueueName) =>
    (
      await stage.sqs.send(
        new ReceiveMessageCommand({ QueueUrl: stage.urls[queue], MaxNumberOfMessages: 10, VisibilityTimeout: 0 }),
      )
    ).Messages?.length ?? 0;

  it('F1 an event of a region that GLEANER_REGIONS does not name deletes nothing there', async () => {
    const eu = stage.simulator.region('eu-west-1');
    const id = eu.createEni({ tags: { [CNI]: 'i-00000000000000bad' } });
    await stage.send('events', JSON.stringify(event('eu-west-1', 'i-00000000000000bad')));
    await stage.deliver();
    expect(eu.enis.get(id)).toBeDefined();
  });
  it('F2 invoke with a region that GLEANER_REGIONS does not name deletes nothing there', async () => {
    const eu = stage.simulator.region('eu-west-1');
    const id = eu.createVolume({ tags: MCM('gone') });
    await stage.call('invoke', { action: 'sweep', scope: { region: 'eu-west-1' } }).catch(() => {});
    expect(eu.volumes.get(id)).toBeDefined();
  });
  it('F3 a terminated event of another account (cross-account bus) whose instance is not ours', async () => {
    const us = stage.simulator.region('us-east-1');
    const foreign = 'i-0fffffffffffffff0'; // lives in account 999999999999
    const id = us.createVolume({ tags: { 'gleaner-owner': foreign } });
    await stage.send('events', JSON.stringify(event('us-east-1', foreign, { account: '999999999999' })));
    await stage.deliver();
    expect(us.volumes.get(id)).toBeDefined();
  });
  it('F4 poison in every queue ends in dead letters or is tried again, never deletes', async () => {
    const before = deletes().length;
    for (const queue of ['claims', 'events', 'reap', 'work'] as const)
      for (const body of ['no json', '{}', 'null', '[]', '{"kind":"reap"}']) await stage.send(queue, body);
    for (let round = 0; round < 5; round += 1) {
      await stage.pump('claims', 'vm-event');
      await stage.pump('events', 'vm-event');
      await stage.pump('reap', 'reap');
      await stage.pump('work', 'schedule');
      await new Promise((resolve) => setTimeout(resolve, 1200));
    }
    expect(deletes().length).toBe(before);
    expect(await left('dead')).toBeGreaterThan(0);
  });
  it('F5 observe: schedule, invoke, reap with work in the queue delete nothing', async () => {
    await stage.deploy(POLICY, { GLEANER_MODE: 'observe' });
    const us = stage.simulator.region('us-east-1');
    const id = us.createEni({ tags: { [CNI]: DEAD } });
    const before = deletes().length;
    await stage.call('schedule', {});
    await stage.call('invoke', { action: 'sweep' });
    await expect(stage.call('invoke', { action: 'sweep', mode: 'enforce' })).rejects.toThrow();
    const work = {
      kind: 'reap',
      runId: 'r',
      scopeId: 'aws:us-east-1',
      notBefore: new Date(0).toISOString(),
      attempt: 0,
      items: [{ key: `aws:us-east-1:${id}`, id, type: 'ec2-network-interface' }],
    };
    await stage.send('reap', JSON.stringify(work));
    await stage.deliver();
    expect(deletes().length).toBe(before);
    await stage.deploy(POLICY);
  });
});
