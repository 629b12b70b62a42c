import type { IncomingMessage } from 'node:http';
import { aws } from '../../shared/aws/registry.ts';
import type { CloudScope, ResourceType, ScopeRequest } from '../../shared/core/ports.ts';
import { serve } from '../../simulator/http.ts';
import { awsEnvironment } from '../support/moto.ts';

export const signal = () => AbortSignal.timeout(20_000);
export const REGION = 'us-east-1';
export const key = (id: string) => `aws:${REGION}:${id}`;
export const item = (id: string) => ({ key: key(id), id });

export interface Said {
  readonly status?: number;
  /** Sent as it is. */
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One request: the parameters of EC2's Query API, or the JSON body of Resource Groups'. */
export interface Asked {
  readonly action: string;
  readonly parameters: URLSearchParams;
  readonly json: { readonly [key: string]: unknown };
}

/** A server that answers what a test says, for answers that no well-behaved one gives. */
export async function scripted(answer: (asked: Asked) => Said) {
  const seen: Asked[] = [];
  const server = await serve(0, async (request: IncomingMessage, text, response) => {
    const isJson = request.url !== '/';
    const parameters = new URLSearchParams(isJson ? '' : text);
    const action = parameters.get('Action') ?? (request.url ?? '').slice(1);
    const asked = { action, parameters, json: isJson ? JSON.parse(text) : {} };
    seen.push(asked);
    const { status = 200, body, headers = {} } = answer(asked);
    response.writeHead(status, { 'content-type': isJson ? 'application/json' : 'text/xml', ...headers }).end(body);
  });
  return { url: server.url, seen, [Symbol.asyncDispose]: server.close };
}

/** EC2's answer with these elements. */
export const said = (action: string, elements: string): Said => ({
  body: `<?xml version="1.0"?><${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>${elements}</${action}Response>`,
});

/** EC2's error. */
export const refused = (code: string, status = 400, message = code): Said => ({
  status,
  body: `<Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors><RequestID>r</RequestID></Response>`,
});

/** One scope on whatever answers at `url`. */
export async function scopeOn(url: string, request: ScopeRequest = {}): Promise<CloudScope> {
  Object.assign(process.env, awsEnvironment(url));
  return (await aws({ region: REGION }).open(request, signal())).scopes[0] as CloudScope;
}

export function typeOf(scope: CloudScope, kind: 'disk' | 'nic'): ResourceType {
  return scope.types.find((type) => type.kind === kind) as ResourceType;
}
