import type { ComputeManagementClient } from '@azure/arm-compute';
import type { NetworkManagementClient } from '@azure/arm-network';
import type { ResourceGraphClient } from '@azure/arm-resourcegraph';
import type { Pipeline, PipelineResponse } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import { InputError } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';
import { Calls, Pacer, requestPolicy, retryPolicy } from './http.ts';

export interface AzureOptions {
  readonly clock: Clock;
  /** `AZURE_RESOURCE_MANAGER_ENDPOINT`; default `https://management.azure.com`. Plain http on loopback only. */
  readonly endpoint?: string;
  /** `AZURE_AUTHORITY_HOST`; default the one that belongs to the endpoint. */
  readonly authorityHost?: string;
  /** Audience of the token where it is not the endpoint itself (Azure Stack Hub). */
  readonly audience?: string;
  /** Default: `DefaultAzureCredential`, loaded and asked on first use. Never used with a loopback endpoint. */
  readonly credential?: TokenCredential;
  /** Client id of a user-assigned managed identity. */
  readonly managedIdentityClientId?: string;
  /** The subscriptions of a deployment: meant when a request names none, and no others may be asked for. */
  readonly subscriptions?: readonly string[];
  /** Time for one HTTP request, its body included. Default 30 s. */
  readonly requestTimeoutMs?: number;
  /** Longest Retry-After that is waited for inside a call; a longer one comes back as an error. Default 15 s. */
  readonly maxRetryWaitMs?: number;
}

/** Where requests go, and with which token. */
export interface Endpoint {
  /** Origin without a trailing slash. */
  readonly url: string;
  /** A simulator or emulator on this machine: no credential is looked for or sent. */
  readonly loopback: boolean;
  readonly scope: string;
  readonly authorityHost: string | undefined;
}

/** Authorities of the national clouds; elsewhere the public one. */
const AUTHORITIES: Readonly<Record<string, string>> = {
  'management.usgovcloudapi.net': 'https://login.microsoftonline.us',
  'management.chinacloudapi.cn': 'https://login.chinacloudapi.cn',
};

/** @throws InputError on anything but https, or http on loopback */
export function endpointOf(options: Pick<AzureOptions, 'endpoint' | 'authorityHost' | 'audience'>): Endpoint {
  const url = parseUrl('endpoint', options.endpoint ?? 'https://management.azure.com');
  const loopback = isLoopback(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback)) {
    throw new InputError('endpoint', 'must be https, or http on loopback');
  }
  if (url.username || url.password || url.search || url.hash)
    throw new InputError('endpoint', 'must be a plain address');
  const authority = options.authorityHost ?? AUTHORITIES[url.hostname];
  const plain = url.protocol === 'http:';
  if (authority !== undefined && !plain && parseUrl('authorityHost', authority).protocol !== 'https:') {
    throw new InputError('authorityHost', 'must be https');
  }
  const base = url.origin + url.pathname.replace(/\/+$/, '');
  return {
    url: base,
    loopback: plain,
    scope: `${(options.audience ?? base).replace(/\/+$/, '')}/.default`,
    authorityHost: authority,
  };
}

function parseUrl(field: string, value: string): URL {
  if (!URL.canParse(value)) throw new InputError(field, 'must be a URL');
  return new URL(value);
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

const USER_AGENT = 'gleaner';

/** One subscription's clients: the SDK's, loaded on first use, with one counter and one pacer over all of them. */
export class ArmClients {
  readonly subscription: string;
  readonly clock: Clock;
  readonly calls = new Calls();
  readonly #options: AzureOptions;
  readonly #endpoint: Endpoint;
  readonly #credential: TokenCredential;
  readonly #pacer: Pacer;
  readonly #maxWaitMs: number;
  #compute: Promise<ComputeManagementClient> | undefined;
  #network: Promise<NetworkManagementClient> | undefined;
  #graph: Promise<ResourceGraphClient> | undefined;

  constructor(subscription: string, options: AzureOptions, endpoint: Endpoint, credential: TokenCredential) {
    this.subscription = subscription;
    this.clock = options.clock;
    this.#options = options;
    this.#endpoint = endpoint;
    this.#credential = credential;
    this.#maxWaitMs = options.maxRetryWaitMs ?? 15_000;
    this.#pacer = new Pacer(options.clock, this.#maxWaitMs);
  }

  compute(): Promise<ComputeManagementClient> {
    this.#compute ??= import('@azure/arm-compute').then(({ ComputeManagementClient: Client }) =>
      this.#fitted(new Client(this.#credential, this.subscription, this.#clientOptions())),
    );
    return this.#compute;
  }

  network(): Promise<NetworkManagementClient> {
    this.#network ??= import('@azure/arm-network').then(({ NetworkManagementClient: Client }) =>
      this.#fitted(new Client(this.#credential, this.subscription, this.#clientOptions())),
    );
    return this.#network;
  }

  graph(): Promise<ResourceGraphClient> {
    this.#graph ??= import('@azure/arm-resourcegraph').then(({ ResourceGraphClient: Client }) =>
      this.#fitted(new Client(this.#credential, this.#clientOptions())),
    );
    return this.#graph;
  }

  /** A GET of a URL that the cloud handed out (a poll), through a client's own pipeline. */
  async follow(client: { readonly pipeline: Pipeline }, url: string, signal: AbortSignal): Promise<PipelineResponse> {
    const { createDefaultHttpClient, createHttpHeaders, createPipelineRequest } = await import(
      '@azure/core-rest-pipeline'
    );
    const request = createPipelineRequest({
      // Relative URLs are allowed in Location headers.
      url: new URL(url, `${this.#endpoint.url}/`).href,
      method: 'GET',
      headers: createHttpHeaders({ accept: 'application/json' }),
      abortSignal: signal,
      allowInsecureConnection: this.#endpoint.loopback,
    });
    return client.pipeline.sendRequest(createDefaultHttpClient(), request);
  }

  #clientOptions() {
    return {
      endpoint: this.#endpoint.url,
      allowInsecureConnection: this.#endpoint.loopback,
      credentials: { scopes: [this.#endpoint.scope] },
      userAgentOptions: { userAgentPrefix: USER_AGENT },
    };
  }

  #fitted<T extends { readonly pipeline: Pipeline }>(client: T): T {
    const { pipeline } = client;
    pipeline.removePolicy({ name: 'defaultRetryPolicy' });
    pipeline.addPolicy(retryPolicy(this.clock, this.#maxWaitMs), { phase: 'Retry' });
    pipeline.addPolicy(requestPolicy(this.calls, this.#pacer, this.#options.requestTimeoutMs ?? 30_000), {
      afterPhase: 'Retry',
    });
    if (this.#endpoint.loopback) pipeline.removePolicy({ name: 'bearerTokenAuthenticationPolicy' });
    return client;
  }
}

/** The credential of a run; `@azure/identity` is loaded when the first token is asked for, and never on loopback. */
export function credentialOf(options: AzureOptions, endpoint: Endpoint): TokenCredential {
  if (endpoint.loopback) {
    return { getToken: () => Promise.reject(new Error('no credential is sent to a loopback endpoint')) };
  }
  if (options.credential) return options.credential;
  let loaded: Promise<TokenCredential> | undefined;
  return {
    getToken: async (scopes, tokenOptions) => {
      loaded ??= import('@azure/identity').then(
        ({ DefaultAzureCredential }) =>
          new DefaultAzureCredential({
            authorityHost: endpoint.authorityHost,
            managedIdentityClientId: options.managedIdentityClientId,
          }),
      );
      return (await loaded).getToken(scopes, tokenOptions);
    },
  };
}
