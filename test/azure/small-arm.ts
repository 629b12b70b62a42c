import { armError, type Scripted, type Seen, SUBSCRIPTION } from './scripted.ts';

interface Native {
  readonly id: string;
  readonly properties: Record<string, unknown>;
}

/** The part of ARM that a run over one subscription needs: reads, group lists, deletes as long-running operations, Resource Graph. */
export class SmallArm {
  readonly #resources = new Map<string, Native>();
  readonly #operations = new Map<string, { readonly key: string; failure?: { code: string; message: string } }>();
  /** Ids that Resource Graph shows; default: what is there. */
  graph: readonly string[] | undefined;
  /** Refuses a delete, or lets its operation fail at its end. */
  refuse: (id: string) => { status: number; code: string } | undefined = () => undefined;
  failAtEnd: (id: string) => { code: string; message: string } | undefined = () => undefined;

  constructor(...resources: readonly Native[]) {
    for (const resource of resources) this.put(resource);
  }

  put(resource: Native): void {
    this.#resources.set(resource.id.toLowerCase(), resource);
  }

  remove(id: string): void {
    this.#resources.delete(id.toLowerCase());
  }

  names(): string[] {
    return [...this.#resources.values()].map(({ id }) => id.split('/').at(-1) ?? '').sort();
  }

  readonly answer = (request: Seen, origin: string): Scripted => {
    const path = request.path.toLowerCase();
    if (path.endsWith('/microsoft.resourcegraph/resources')) return { body: this.#graphPage() };
    if (path.includes('/locations/')) return this.#poll(path);
    if (/\/(disks|networkinterfaces|virtualmachines)$/.test(path)) {
      return {
        body: { value: [...this.#resources].filter(([key]) => key.startsWith(`${path}/`)).map(([, one]) => one) },
      };
    }
    const found = this.#resources.get(path);
    if (request.method === 'DELETE') return found ? this.#delete(found, origin) : { status: 204 };
    return found ? { body: found } : { status: 404, body: armError('ResourceNotFound') };
  };

  #graphPage(): object {
    const ids =
      this.graph ?? [...this.#resources.values()].map(({ id }) => id).filter((id) => !/virtualMachines/i.test(id));
    return { totalRecords: ids.length, count: ids.length, resultTruncated: 'false', data: ids.map((id) => ({ id })) };
  }

  #delete({ id }: Native, origin: string): Scripted {
    const refusal = this.refuse(id);
    if (refusal) return { status: refusal.status, body: armError(refusal.code) };
    const operation = `op-${this.#operations.size}`;
    const failure = this.failAtEnd(id);
    this.#operations.set(operation, { key: id.toLowerCase(), ...(failure && { failure }) });
    const provider = /microsoft\.[a-z]+/i.exec(id)?.[0];
    const url = `${origin}/subscriptions/${SUBSCRIPTION}/providers/${provider}/locations/we/operations/${operation}`;
    return { status: 202, headers: { 'azure-asyncoperation': url, 'retry-after': '10' } };
  }

  #poll(path: string): Scripted {
    const operation = this.#operations.get(path.split('/').at(-1) ?? '');
    if (!operation) return { status: 404, body: armError('NotFound') };
    if (operation.failure) return { body: { status: 'Failed', error: operation.failure } };
    this.#resources.delete(operation.key);
    return { body: { status: 'Succeeded' } };
  }
}
