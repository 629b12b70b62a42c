import { spawnSync } from 'node:child_process';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { freePort, startServer } from './child.ts';

const PYTHON = 'python3.11';

/** Why moto cannot be used here; undefined = it can. MOTO_REQUIRED=1 makes its absence a failure. */
export function motoMissing(): string | undefined {
  const probe = spawnSync(PYTHON, ['-c', 'import moto.server'], { encoding: 'utf8' });
  if (probe.status === 0) return undefined;
  const reason = `moto is not installed (${PYTHON} -m pip install 'moto[server]')`;
  if (process.env.MOTO_REQUIRED === '1') throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return reason;
}

export interface Moto {
  readonly url: string;
  /** Every request line since the start: `"POST / HTTP/1.1" 200`. */
  log(): string;
  reset(): Promise<void>;
  stop(): Promise<void>;
}

export async function startMoto(): Promise<Moto> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = await startServer(
    PYTHON,
    ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
    `${url}/moto-api/`,
  );
  const reset = async () => void (await fetch(`${url}/moto-api/reset`, { method: 'POST' }));
  return { url, log: server.log, reset, stop: server.stop };
}

/** What the AWS SDK reads, pointing at a server on this machine. */
export function awsEnvironment(url: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: url,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}

/** The ledger's table, as the deployment makes it. */
export async function createTable(endpoint: string): Promise<void> {
  await new DynamoDBClient({
    region: 'us-east-1',
    endpoint,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  }).send(
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
}
