import { ComputeManagementClient } from '@azure/arm-compute';
import { NetworkManagementClient } from '@azure/arm-network';
import { ResourceGraphClient } from '@azure/arm-resourcegraph';
import type { Pipeline } from '@azure/core-rest-pipeline';
import { expect } from 'vitest';
import { type AzureSimulatorOptions, SUBSCRIPTION, startAzureSimulator } from '../../../simulator/azure/server.ts';
import { World } from '../../../simulator/world/world.ts';

const credential = { getToken: () => Promise.reject(new Error('no token goes to loopback')) };

/** A simulator with the SDKs' own clients on it, which neither retry nor look for a credential. */
export async function start(options: AzureSimulatorOptions = {}) {
  const world = options.world ?? new World();
  const simulator = await startAzureSimulator({ ...options, world });
  const clientOptions = { endpoint: simulator.url, allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
  const plain = <T extends { readonly pipeline: Pipeline }>(client: T): T => {
    client.pipeline.removePolicy({ name: 'bearerTokenAuthenticationPolicy' });
    return client;
  };
  const graph = plain(new ResourceGraphClient(credential, clientOptions));
  return {
    world,
    simulator,
    sub: simulator.subscription(),
    compute: plain(new ComputeManagementClient(credential, SUBSCRIPTION, clientOptions)),
    network: plain(new NetworkManagementClient(credential, SUBSCRIPTION, clientOptions)),
    graph,
    ask: (query: string, options: object = {}, subscriptions: readonly string[] = [SUBSCRIPTION]) =>
      graph.resources({
        subscriptions: [...subscriptions],
        query,
        options: { resultFormat: 'objectArray', ...options },
      }),
    raw: (path: string, method = 'GET', body?: object) =>
      fetch(`${simulator.url}${path}`, {
        method,
        ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      }),
    [Symbol.asyncDispose]: () => simulator.close(),
  };
}

export const fails = (promise: PromiseLike<unknown>, code: string, statusCode: number) =>
  expect(promise).rejects.toMatchObject({ code, statusCode });
