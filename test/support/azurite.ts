import { join } from 'node:path';
import { freePort, startServer } from './child.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The emulator's own account, the same everywhere and no secret. */
const ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export interface Azurite {
  readonly connectionString: string;
  stop(): Promise<void>;
}

/** Azure Storage's emulator, in memory, as a child process on free ports. */
export async function startAzurite(): Promise<Azurite> {
  const [blob, queue, table] = [await freePort(), await freePort(), await freePort()];
  const ports = ['--blobPort', `${blob}`, '--queuePort', `${queue}`, '--tablePort', `${table}`];
  const args = [...ports, '--inMemoryPersistence', '--skipApiVersionCheck', '--loose', '--silent'];
  const binary = join(ROOT, 'node_modules/.bin/azurite');
  const server = await startServer(binary, args, `http://127.0.0.1:${table}/`);
  const connectionString = [
    'DefaultEndpointsProtocol=http',
    `AccountName=${ACCOUNT}`,
    `AccountKey=${KEY}`,
    `QueueEndpoint=http://127.0.0.1:${queue}/${ACCOUNT}`,
    `TableEndpoint=http://127.0.0.1:${table}/${ACCOUNT}`,
  ].join(';');
  return { connectionString: `${connectionString};`, stop: server.stop };
}
