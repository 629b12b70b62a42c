import { createServer, request as httpRequest } from 'node:http';

/** Sends each service's calls where `upstream` says, and notes them as `service:Operation`. */
export async function startProxy(
  upstream: (service: string) => string,
  note: (call: string) => void,
  /** Whether the answer to this target gets lost: the server has done what it was asked. */
  loses: (target: string) => boolean = () => false,
) {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = Buffer.concat(chunks);
      const service = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(incoming.headers.authorization ?? '')?.[1] ?? '';
      note(`${service}:${operationOf(incoming.headers['x-amz-target'], body.toString(), incoming.url ?? '')}`);
      // Tags given with what is created need a permission of their own.
      if (service === 'ec2' && body.includes('TagSpecification.1.')) note('ec2:CreateTags');
      const lost = loses(String(incoming.headers['x-amz-target'] ?? ''));
      const base = upstream(service);
      const forwarded = httpRequest(
        `${base}${incoming.url}`,
        { method: incoming.method, headers: incoming.headers },
        (answer) => {
          if (lost) {
            answer.resume();
            answer.on('end', () => outgoing.destroy());
            return;
          }
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        },
      );
      forwarded.on('error', () => outgoing.destroy());
      forwarded.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${address.port}`, close };
}

function operationOf(target: string | string[] | undefined, body: string, url: string): string {
  if (typeof target === 'string') return target.split('.').at(-1) ?? '';
  if (url.startsWith('/list-group-resources')) return 'ListGroupResources';
  return new URLSearchParams(body).get('Action') ?? url;
}
