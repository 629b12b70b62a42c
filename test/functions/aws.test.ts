import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { build } from '../../infra/build.ts';
import type { Report } from '../../shared/core/report.ts';
import { reportSchema } from '../../shared/core/report.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment, type Moto, motoMissing, startMoto } from '../support/moto.ts';

const QUEUES = ['claims', 'events', 'work', 'reap', 'dead'] as const;
type QueueName = (typeof QUEUES)[number];
const CNI = 'node.k8s.amazonaws.com/instance_id';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
type Handler = (event: unknown, context: Context) => Promise<unknown>;

const ROOT = join(import.meta.dirname, '../..');

/**
 * The bundles as they are deployed, on SQS and DynamoDB of moto and EC2 of the simulator, which has what moto lacks:
 * attachments that end, state changes, in-use errors, throttling.
 */
describe.skipIf(motoMissing())('AWS functions, as bundles', () => {
  let moto: Moto;
  let simulator: AwsSimulator;
  let sqs: SQSClient;
  let out: string;
  const urls = {} as Record<QueueName, string>;
  const handlers = {} as Record<'vm-event' | 'schedule' | 'reap' | 'invoke', Handler>;
  const context = { getRemainingTimeInMillis: () => 300_000 } as Context;

  beforeAll(async () => {
    moto = await startMoto();
    simulator = await startAwsSimulator({ world: new World({ start: new Date(Date.now() - 3_600_000), ticking: true }) });
    Object.assign(process.env, awsEnvironment(moto.url), { AWS_ENDPOINT_URL_EC2: simulator.url, AWS_ENDPOINT_URL_RESOURCE_GROUPS: simulator.url });
    sqs = new SQSClient({ region: 'us-east-1' });
    const dead = await sqs.send(new CreateQueueCommand({ QueueName: 'dead' }));
    urls.dead = dead.QueueUrl ?? '';
    const arn = await sqs.send(new GetQueueAttributesCommand({ QueueUrl: urls.dead, AttributeNames: ['QueueArn'] }));
    const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: arn.Attributes?.QueueArn, maxReceiveCount: 3 });
    for (const name of QUEUES) {
      if (name === 'dead') continue;
      const Attributes = { RedrivePolicy, VisibilityTimeout: '0' };
      urls[name] = (await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes }))).QueueUrl ?? '';
    }
    await new DynamoDBClient({ region: 'us-east-1' }).send(
      new CreateTableCommand({
        TableName: 'gleaner',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
      }),
    );
    out = mkdtempSync(join(ROOT, 'dist-test-'));
    build(['aws'], { out });
    Object.assign(process.env, {
      GLEANER_MODE: 'enforce',
      GLEANER_POLICY_FILE: 'policy.json',
      GLEANER_TABLE: 'gleaner',
      GLEANER_REAP_QUEUE_URL: urls.reap,
      GLEANER_WORK_QUEUE_URL: urls.work,
      GLEANER_DEAD_LETTER_QUEUE_URL: urls.dead,
      GLEANER_CLAIMS_QUEUE_URL: urls.claims,
      GLEANER_EVENTS_QUEUE_URL: urls.events,
      GLEANER_EVENT_BUS: 'default',
      GLEANER_LOG_LEVEL: 'error',
      POWERTOOLS_METRICS_DISABLED: 'true',
    });
    for (const name of ['vm-event', 'schedule', 'reap', 'invoke'] as const) {
      writeFileSync(join(out, 'aws', name, 'policy.json'), JSON.stringify({ grace: '0', minAge: '0', settle: '0' }));
      const bundle = (await import(pathToFileURL(join(out, 'aws', name, 'index.mjs')).href)) as { handler: Handler };
      handlers[name] = bundle.handler;
    }
    simulator.events.listen((event) => {
      const queue = event.detail.state === 'terminated' ? urls.events : urls.claims;
      pending.push(sqs.send(new SendMessageCommand({ QueueUrl: queue, MessageBody: JSON.stringify(event) })));
    });
  });
  afterAll(async () => {
    rmSync(out, { recursive: true, force: true });
    await simulator.close();
    await moto.stop();
  });
  const pending: Promise<unknown>[] = [];
  beforeEach(() => {
    simulator.region().busyMs = 0;
    simulator.world.requests.length = 0;
  });

  /** What Lambda's event source mapping does: receive, call, delete what did not fail. Until the queue has nothing visible. */
  async function pump(queue: QueueName, name: keyof typeof handlers, rounds = 10): Promise<SQSBatchResponse[]> {
    await Promise.all(pending.splice(0));
    const answers: SQSBatchResponse[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: urls[queue], MaxNumberOfMessages: 5, VisibilityTimeout: 1 }));
      if (Messages.length === 0) return answers;
      const Records = Messages.map((message) => ({
        messageId: message.MessageId ?? '',
        receiptHandle: message.ReceiptHandle ?? '',
        body: message.Body ?? '',
        eventSourceARN: `arn:aws:sqs:us-east-1:123456789012:${queue}`,
      }));
      const answer = (await handlers[name]({ Records } as SQSEvent, context)) as SQSBatchResponse;
      answers.push(answer);
      const failed = new Set(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      for (const { messageId, receiptHandle } of Records) {
        if (failed.has(messageId)) continue;
        await sqs.send(new DeleteMessageCommand({ QueueUrl: urls[queue], ReceiptHandle: receiptHandle }));
      }
    }
    return answers;
  }
  const deliver = async () => {
    await pump('claims', 'vm-event');
    await pump('events', 'vm-event');
    await pump('reap', 'reap');
  };
  /** Events tell whole seconds only: what is to be older than its VM's death is made some seconds before. */
  const later = () => simulator.world.advance(3000);
  const deletes = () => simulator.world.writes().map(({ target, status }) => `${target} ${status}`);
  const invoke = (body: unknown) => handlers.invoke(body, context);

  it('from the event over claims to the deletion: the VM was seen, died, and left what no tag attributes', async () => {
    const region = simulator.region();
    const karpenter = { 'karpenter.sh/nodepool': 'default', 'kubernetes.io/cluster/c': 'owned' };
    const vm = region.run({ name: 'node-1', tags: karpenter, volumes: [{ tags: karpenter }], enis: [{ tags: karpenter }] });
    const neighbour = region.run({ name: 'node-2', tags: karpenter, volumes: [{ tags: karpenter }] });
    await deliver();
    const left = [...region.volumes.all(), ...region.enis.all()].filter((one) => JSON.stringify(one).includes(vm));
    later();
    region.terminate(vm);
    await deliver();
    const ids = left.map((one) => ('VolumeId' in one ? one.VolumeId : (one as { NetworkInterfaceId: string }).NetworkInterfaceId));
    expect(deletes().sort()).toEqual(ids.map((id) => `${id} 200`).sort());
    expect([...region.volumes.all()].every((one) => one.Attachments?.[0]?.InstanceId === neighbour)).toBe(true);
    const { items } = (await invoke({ action: 'history' })) as { items: { id: string; owner: { evidence: string } }[] };
    expect(items.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    expect(items[0]?.owner.evidence).toBe('claim');
    later();
    region.terminate(neighbour);
    await deliver();
  });

  it('takes at most 4 + k calls for an event that left k things', async () => {
    const region = simulator.region();
    const vm = region.run({ name: 'node-k', tags: MCM('node-k'), volumes: [{ tags: MCM('node-k') }, { tags: MCM('node-k') }], enis: [{ tags: MCM('node-k') }] });
    await deliver();
    later();
    region.terminate(vm);
    simulator.world.requests.length = 0;
    await pump('events', 'vm-event');
    expect(simulator.world.requests.length).toBeLessThanOrEqual(4 + 3);
    expect(simulator.world.writes()).toEqual([]);
    simulator.world.requests.length = 0;
    await pump('reap', 'reap');
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
    await deliver();
    expect(deletes()).toEqual([`${eni} 200`]);
    simulator.events.emit({ region: 'us-east-1', instanceId: vm, state: 'terminated', time: new Date(Date.now() - 7_200_000) });
    await deliver();
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
    await deliver();
    expect(deletes()).toEqual([`${eni} 400`]);
    // Put back with the delay that the error calls for, so nothing is visible now.
    const attributes = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: urls.reap, AttributeNames: ['ApproximateNumberOfMessagesDelayed'] }),
    );
    expect(attributes.Attributes?.ApproximateNumberOfMessagesDelayed).toBe('1');
    region.busyUntilMs.delete(eni);
    const work = { kind: 'reap', runId: 'again', scopeId: 'aws:us-east-1', notBefore: new Date().toISOString(), attempt: 1 };
    const items = [{ key: `aws:us-east-1:${eni}`, id: eni, type: 'ec2-network-interface' }];
    await sqs.send(new SendMessageCommand({ QueueUrl: urls.reap, MessageBody: JSON.stringify({ ...work, items }) }));
    await pump('reap', 'reap');
    expect(region.enis.get(eni)).toBeUndefined();
  });

  it('sends a poison message to the dead-letter queue, and works on its neighbours', async () => {
    const region = simulator.region();
    const vm = region.run();
    const eni = region.createEni({ tags: { [CNI]: vm } });
    await deliver();
    const bad = ['no json', '{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{}}'];
    for (const MessageBody of bad) await sqs.send(new SendMessageCommand({ QueueUrl: urls.events, MessageBody }));
    later();
    region.terminate(vm);
    await pump('events', 'vm-event');
    for (let tries = 0; tries < 3; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1200));
      await pump('events', 'vm-event', 1);
    }
    await pump('reap', 'reap');
    expect(region.enis.get(eni)).toBeUndefined();
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: urls.dead, MaxNumberOfMessages: 10 }));
    expect(Messages.map(({ Body }) => Body).sort()).toEqual([...bad].sort());
  });

  it('sweeps what events never told of, by handing it to the function that deletes', async () => {
    const region = simulator.region();
    const volumes = Array.from({ length: 250 }, (_, index) => region.createVolume({ tags: MCM(`lost-${index}`) }));
    const report = reportSchema.parse(await handlers.schedule({}, context));
    expect(report).toMatchObject({ verb: 'sweep', mode: 'enforce', complete: true, stoppedBy: 'budget' });
    expect(report.counts).toMatchObject({ listed: 250, reap: 250, deferred: 250, deleted: 0 });
    expect(simulator.world.writes()).toEqual([]);
    await pump('reap', 'reap');
    expect(volumes.filter((id) => region.volumes.get(id) === undefined)).toHaveLength(200);
    for (const id of volumes) region.volumes.set(id, undefined);
  });

  it('sweeps, plans and explains by hand, by region, cluster, VM and resource group', async () => {
    const region = simulator.region();
    const mine = region.createVolume({ tags: MCM('hand-1') });
    const other = region.createVolume({ tags: { ...MCM('hand-2'), 'kubernetes.io/cluster/shoot': '0', 'kubernetes.io/cluster/two': '1' } });
    region.groups.set('g1', { arns: [region.arn('volume', mine)] });
    region.groups.set('broken', { arns: [], queryErrors: [{ ErrorCode: 'CLOUDFORMATION_STACK_INACTIVE', Message: 'gone' }] });
    const planned = reportSchema.parse(await invoke({ action: 'plan', scope: { region: 'us-east-1' } }));
    expect(planned.items.map(({ id, outcome }) => `${id} ${outcome}`).sort()).toEqual([`${mine} would-delete`, `${other} would-delete`].sort());
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
    [{ action: 'explain', id: 'i-0123456789abcdef0' }, /^id: /],
    ['sweep', /^body/],
  ])('refuses %j, naming the field, and touches nothing', async (body, message) => {
    await expect(invoke(body)).rejects.toThrow(message);
    expect(simulator.world.writes()).toEqual([]);
  });

  it('stops well before its time limit, and hands back the rest', async () => {
    const region = simulator.region();
    const ids = Array.from({ length: 3 }, (_, index) => region.createVolume({ tags: MCM(`slow-${index}`) }));
    const short = { getRemainingTimeInMillis: () => 10_000 } as Context;
    const report = (await handlers.schedule({}, short)) as Report;
    expect(report).toMatchObject({ stoppedBy: 'time', complete: false });
    expect(simulator.world.writes()).toEqual([]);
    await pump('work', 'schedule');
    await pump('reap', 'reap');
    expect(ids.every((id) => region.volumes.get(id) === undefined)).toBe(true);
  });
});
