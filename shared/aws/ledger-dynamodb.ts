import {
  type AttributeValue,
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  type PutItemCommandInput,
  paginateQuery,
} from '@aws-sdk/client-dynamodb';
import pMap from 'p-map';
import { chunks } from '../core/chunks.ts';
import {
  type Clock,
  LedgerConflict,
  type LedgerEntry,
  type LedgerKey,
  type LedgerQuery,
  type LedgerStore,
  type WriteCondition,
} from '../core/ports.ts';

/** BatchGetItem takes 100 keys. */
const BATCH = 100;
const BATCHES_AT_ONCE = 8;

export interface DynamoOptions {
  readonly region: string;
  readonly table: string;
  readonly clock: Clock;
}

/**
 * A ledger in one DynamoDB table: keys `pk` and `sk`, `value` as JSON, `version`, `expires` in seconds for the table's
 * time-to-live. DynamoDB removes expired items days later, so they are filtered here.
 */
export class DynamoLedger implements LedgerStore {
  readonly #client: DynamoDBClient;
  readonly #table: string;
  readonly #clock: Clock;

  constructor({ region, table, clock }: DynamoOptions) {
    this.#client = new DynamoDBClient({
      region,
      maxAttempts: 6,
      requestHandler: { connectionTimeout: 3000, requestTimeout: 5000, throwOnRequestTimeout: true },
    });
    this.#table = table;
    this.#clock = clock;
  }

  async get(key: LedgerKey): Promise<LedgerEntry | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: keyOf(key), ConsistentRead: true }),
    );
    return this.#live(Item);
  }

  async getMany(keys: readonly LedgerKey[]): Promise<LedgerEntry[]> {
    const distinct = [...new Map(keys.map((key) => [`${key.partition}\n${key.sort}`, key])).values()];
    const batches = await pMap(chunks(distinct, BATCH), (batch) => this.#getBatch(batch), {
      concurrency: BATCHES_AT_ONCE,
    });
    return batches.flat();
  }

  async #getBatch(keys: readonly LedgerKey[]): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    let open: Record<string, AttributeValue>[] = keys.map(keyOf);
    for (let attempt = 0; open.length > 0; attempt += 1) {
      // What a busy table leaves out comes back as unprocessed, and must not be taken for absent.
      if (attempt > 0) await this.#clock.sleep(Math.min(50 * 2 ** attempt, 3000));
      if (attempt > 10) throw new Error(`${open.length} keys of the ledger were not read`);
      const RequestItems = { [this.#table]: { Keys: open, ConsistentRead: true } };
      const answer = await this.#client.send(new BatchGetItemCommand({ RequestItems }));
      for (const item of answer.Responses?.[this.#table] ?? [])
        entries.push(...[this.#live(item)].filter((one) => one !== undefined));
      open = answer.UnprocessedKeys?.[this.#table]?.Keys ?? [];
    }
    return entries;
  }

  async put(key: LedgerKey, value: LedgerEntry['value'], expiresAt: Date, condition: WriteCondition): Promise<string> {
    const version = crypto.randomUUID();
    const Item = {
      ...keyOf(key),
      value: { S: JSON.stringify(value) },
      version: { S: version },
      expires: { N: String(Math.ceil(expiresAt.getTime() / 1000)) },
    };
    const input = { TableName: this.#table, Item, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const };
    try {
      await this.#conditional(key, () =>
        this.#client.send(new PutItemCommand({ ...input, ...this.#expression(condition) })),
      );
    } catch (error) {
      // An answer that got lost on its way is asked for again, and then the condition fails on our own write.
      const there = error instanceof LedgerConflict && (error.cause as ConditionalCheckFailedException).Item;
      if (!there || there.version?.S !== version) throw error;
    }
    return version;
  }

  async delete(key: LedgerKey, condition?: { readonly version: string }): Promise<void> {
    const Key = keyOf(key);
    await this.#conditional(key, () =>
      this.#client.send(
        new DeleteItemCommand({ TableName: this.#table, Key, ...this.#expression(condition ?? 'any') }),
      ),
    );
  }

  async *query(
    partition: string,
    { prefix = '', reverse = false, limit = Number.POSITIVE_INFINITY }: LedgerQuery = {},
  ) {
    const input = {
      TableName: this.#table,
      ConsistentRead: true,
      ScanIndexForward: !reverse,
      KeyConditionExpression: prefix === '' ? 'pk = :pk' : 'pk = :pk AND begins_with(sk, :prefix)',
      ExpressionAttributeValues: { ':pk': { S: partition }, ...(prefix !== '' && { ':prefix': { S: prefix } }) },
    };
    const pageSize = Number.isFinite(limit) ? Math.max(limit, 1) : undefined;
    let left = limit;
    for await (const page of paginateQuery({ client: this.#client, pageSize }, input)) {
      for (const item of page.Items ?? []) {
        const entry = this.#live(item);
        if (!entry) continue;
        if (left <= 0) return;
        left -= 1;
        yield entry;
      }
      if (left <= 0) return;
    }
  }

  async close(): Promise<void> {
    this.#client.destroy();
  }

  #live(item: Record<string, AttributeValue> | undefined): LedgerEntry | undefined {
    if (!item) return undefined;
    const expiresAt = new Date(Number(item.expires?.N) * 1000);
    if (!(expiresAt > this.#clock.now())) return undefined;
    return {
      partition: item.pk?.S ?? '',
      sort: item.sk?.S ?? '',
      value: JSON.parse(item.value?.S ?? '{}') as LedgerEntry['value'],
      version: item.version?.S ?? '',
      expiresAt,
    };
  }

  #expression(condition: WriteCondition): Expression {
    if (condition === 'any') return {};
    const now = { N: String(this.#clock.now().getTime() / 1000) };
    if (condition === 'absent') {
      return {
        ConditionExpression: 'attribute_not_exists(pk) OR #expires <= :now',
        ExpressionAttributeNames: { '#expires': 'expires' },
        ExpressionAttributeValues: { ':now': now },
      };
    }
    return {
      ConditionExpression: '#version = :version AND #expires > :now',
      ExpressionAttributeNames: { '#version': 'version', '#expires': 'expires' },
      ExpressionAttributeValues: { ':version': { S: condition.version }, ':now': now },
    };
  }

  async #conditional(key: LedgerKey, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (cause) {
      if (cause instanceof ConditionalCheckFailedException)
        throw new LedgerConflict(`${key.partition}/${key.sort}`, { cause });
      throw cause;
    }
  }
}

type Expression = Pick<
  PutItemCommandInput,
  'ConditionExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
>;

function keyOf({ partition, sort }: LedgerKey): Record<string, AttributeValue> {
  return { pk: { S: partition }, sk: { S: sort } };
}
