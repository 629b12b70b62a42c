import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { build } from '../../infra/build.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { startProxy } from '../support/aws-proxy.ts';
import { awsEnvironment, createTable, startMoto } from '../support/moto.ts';

const ROOT = join(import.meta.dirname, '../..');
const QUEUES = ['claims', 'events', 'work', 'reap', 'dead'] as const;
export type QueueName = (typeof QUEUES)[number];
const FUNCTIONS = ['vm-event', 'schedule', 'reap', 'invoke'] as const;
export type FunctionName = (typeof FUNCTIONS)[number];
type Handler = (event: unknown, context: Context) => Promise<unknown>;

/** Time enough; the bundles stop early by what it says. */
const context = { getRemainingTimeInMillis: () => 300_000 } as Context;

/**
 * The bundles as they are deployed, on SQS, DynamoDB and EventBridge of moto and EC2 of the simulator, which has what moto
 * lacks: attachments that end, state changes, in-use errors, throttling. Between them a proxy that notes every call.
 */
export class AwsStage {
  readonly simulator: AwsSimulator;
  readonly sqs: SQSClient;
  readonly urls: Readonly<Record<QueueName, string>>;
  /** `service:Operation` of every call that a function made, by function. */
  readonly calls = new Map<FunctionName, Set<string>>();
  readonly #handlers = new Map<FunctionName, Handler>();
  readonly #pending: Promise<unknown>[] = [];
  readonly #out: string;
  readonly #close: () => Promise<void>;
  #actor: FunctionName | undefined;
  #loads = 0;

  private constructor(
    simulator: AwsSimulator,
    sqs: SQSClient,
    urls: Record<QueueName, string>,
    close: () => Promise<void>,
  ) {
    this.simulator = simulator;
    this.sqs = sqs;
    this.urls = urls;
    this.#close = close;
    this.#out = mkdtempSync(join(ROOT, 'dist-test-'));
    build(['aws'], { out: this.#out });
  }

  static async start(): Promise<AwsStage> {
    const moto = await startMoto();
    // An hour behind, so that a test can let time pass without leaving the real present of moto and of the bundles.
    const world = new World({ start: new Date(Date.now() - 3_600_000), ticking: true });
    const simulator = await startAwsSimulator({ world });
    let note: (call: string) => void = () => {};
    const isEc2 = (service: string) => service === 'ec2' || service === 'resource-groups';
    const proxy = await startProxy(
      (service) => (isEc2(service) ? simulator.url : moto.url),
      (call) => note(call),
    );
    Object.assign(process.env, awsEnvironment(proxy.url));
    const sqs = new SQSClient({ region: 'us-east-1', endpoint: proxy.url });
    // SQS is called where the queue's URL points, so these point at the proxy.
    const urls = await createQueues(sqs, (url) => url.replace(moto.url, proxy.url));
    await createTable(moto.url);
    const stage = new AwsStage(simulator, sqs, urls, async () => {
      await proxy.close();
      await simulator.close();
      await moto.stop();
    });
    note = (call) => stage.#note(call);
    simulator.events.listen((event) => {
      const QueueUrl = event.detail.state === 'terminated' ? urls.events : urls.claims;
      stage.#pending.push(sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(event) })));
    });
    return stage;
  }

  /** Loads the bundles anew, as another deployment would: with this policy and these settings. */
  async deploy(policy: object, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#loads += 1;
    Object.assign(process.env, {
      GLEANER_MODE: 'enforce',
      GLEANER_POLICY_FILE: 'policy.json',
      GLEANER_REGIONS: 'us-east-1',
      GLEANER_TABLE: 'gleaner',
      GLEANER_REAP_QUEUE_URL: this.urls.reap,
      GLEANER_WORK_QUEUE_URL: this.urls.work,
      GLEANER_DEAD_LETTER_QUEUE_URL: this.urls.dead,
      GLEANER_CLAIMS_QUEUE_URL: this.urls.claims,
      GLEANER_EVENTS_QUEUE_URL: this.urls.events,
      GLEANER_EVENT_BUS: 'default',
      GLEANER_LOG_LEVEL: 'error',
      POWERTOOLS_METRICS_DISABLED: 'true',
      ...settings,
    });
    for (const name of FUNCTIONS) {
      writeFileSync(join(this.#out, 'aws', name, 'policy.json'), JSON.stringify(policy));
      const url = `${pathToFileURL(join(this.#out, 'aws', name, 'index.mjs')).href}?${this.#loads}`;
      this.#handlers.set(name, ((await import(url)) as { handler: Handler }).handler);
    }
  }

  async call(name: FunctionName, event: unknown, as: Context = context): Promise<unknown> {
    this.#actor = name;
    try {
      return await this.#handlers.get(name)?.(event, as);
    } finally {
      this.#actor = undefined;
    }
  }

  /** What Lambda's event source mapping does: receive, call, delete what did not fail. Until nothing is visible. */
  async pump(queue: QueueName, name: FunctionName, rounds = 10): Promise<void> {
    await Promise.all(this.#pending.splice(0));
    const QueueUrl = this.urls[queue];
    for (let round = 0; round < rounds; round += 1) {
      const receive = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 5, VisibilityTimeout: 1 });
      const { Messages = [] } = await this.sqs.send(receive);
      if (Messages.length === 0) return;
      const Records = Messages.map((message) => ({
        messageId: message.MessageId ?? '',
        receiptHandle: message.ReceiptHandle ?? '',
        body: message.Body ?? '',
        eventSourceARN: `arn:aws:sqs:us-east-1:123456789012:${queue}`,
      }));
      const answer = (await this.call(name, { Records } as SQSEvent)) as SQSBatchResponse;
      const failed = new Set(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      for (const { messageId, receiptHandle } of Records) {
        if (!failed.has(messageId))
          await this.sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receiptHandle }));
      }
    }
  }

  /** Everything that is under way, to its end. */
  async deliver(): Promise<void> {
    await this.pump('claims', 'vm-event');
    await this.pump('events', 'vm-event');
    await this.pump('reap', 'reap');
  }

  async send(queue: QueueName, body: string): Promise<void> {
    await this.sqs.send(new SendMessageCommand({ QueueUrl: this.urls[queue], MessageBody: body }));
  }

  async stop(): Promise<void> {
    rmSync(this.#out, { recursive: true, force: true });
    await this.#close();
  }

  #note(call: string): void {
    if (this.#actor === undefined) return;
    const calls = this.calls.get(this.#actor) ?? new Set();
    this.calls.set(this.#actor, calls.add(call));
  }
}

async function createQueues(sqs: SQSClient, seenBy: (url: string) => string): Promise<Record<QueueName, string>> {
  const urls = {} as Record<QueueName, string>;
  urls.dead = seenBy((await sqs.send(new CreateQueueCommand({ QueueName: 'dead' }))).QueueUrl ?? '');
  const arn = await sqs.send(new GetQueueAttributesCommand({ QueueUrl: urls.dead, AttributeNames: ['QueueArn'] }));
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: arn.Attributes?.QueueArn, maxReceiveCount: 3 });
  for (const name of QUEUES) {
    if (name === 'dead') continue;
    const Attributes = { RedrivePolicy, VisibilityTimeout: '0' };
    urls[name] = seenBy((await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes }))).QueueUrl ?? '');
  }
  return urls;
}
