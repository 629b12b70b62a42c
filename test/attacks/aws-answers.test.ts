import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { sweep } from '../../shared/core/engine.ts';
import { ownerKey } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { said, scopeOn, scripted } from '../aws/scripted.ts';
import { awsEnvironment } from '../support/moto.ts';
import { testEngine } from '../support/run.ts';
import { AT_ONCE, CNI, enforce, MCM, MINUTE, Stage } from './support.ts';

const VM = 'i-0aaaaaaaaaaaaaaaa';
const ref = { by: 'id' as const, value: VM, place: 'us-east-1' };
const running = `<item><reservationId>r-1</reservationId><instancesSet><item><instanceId>${VM}</instanceId><instanceState><code>16</code><name>running</name></instanceState></item></instancesSet></item>`;

describe('answers of DescribeInstances', () => {
  const ask = async (answer: Parameters<typeof scripted>[0], ms = 4000) => {
    const server = await scripted(answer);
    const scope = await scopeOn(server.url);
    const state = await Promise.race([
      scope.owners.lookup([ref], AbortSignal.timeout(ms)).then((map) => map.get(ownerKey(ref))?.state),
      new Promise<string>((resolve) => setTimeout(() => resolve('hangs'), ms + 2000)),
    ]);
    const requests = server.seen.length;
    await server[Symbol.asyncDispose]();
    return { state, requests };
  };
  it('G1 tokens that go A, B, A, B: an answer without an end is found out', async () => {
    let n = 0;
    const { state, requests } = await ask(({ action }) => {
      n += 1;
      return said(action, `<reservationSet/><nextToken>${n % 2 ? 'A' : 'B'}</nextToken>`);
    });
    expect(state).toBe('unknown');
    expect(requests).toBeLessThan(20);
  });
  it('G2 an empty page with a token, then the living', async () => {
    const { state } = await ask(({ action, parameters }) =>
      parameters.get('NextToken')
        ? said(action, `<reservationSet>${running}</reservationSet>`)
        : said(action, '<reservationSet/><nextToken>t</nextToken>'),
    );
    expect(state).toBe('alive');
  });
  it('G3 a reservation with an empty list of instances proves nothing', async () => {
    const { state } = await ask(({ action }) =>
      said(action, `<reservationSet><item><reservationId>r</reservationId><instancesSet/></item></reservationSet>`),
    );
    expect(state).toBe('unknown');
  });
  it('G4 an instance without a state', async () => {
    const { state } = await ask(({ action }) =>
      said(action, `<reservationSet>${running.replace(/<instanceState>.*<\/instanceState>/, '')}</reservationSet>`),
    );
    expect(state).toBe('unknown');
  });
  it('G5 an error inside a 200', async () => {
    const { state } = await ask(({ action }) => ({
      ...said(action, ''),
      body: '<Response><Errors><Error><Code>InternalError</Code></Error></Errors></Response>',
    }));
    expect(state).toBe('unknown');
  });
  it('G6 a captive page: 200, HTML', async () => {
    const { state } = await ask(() => ({ body: '<html><body>login</body></html>' }));
    expect(state).toBe('unknown');
  });
  it('G7 the first page fails for good, the second would have come', async () => {
    const { state } = await ask(({ action, parameters }) =>
      parameters.get('NextToken')
        ? {
            status: 403,
            body: '<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>x</Message></Error></Errors></Response>',
          }
        : said(action, '<reservationSet/><nextToken>t</nextToken>'),
    );
    expect(state).toBe('unknown');
  });
});

describe('hidden managed resources, through a sweep', () => {
  it('O1b an ENI whose living owner is a hidden managed instance is deleted', async () => {
    const deleted: string[] = [];
    const eni = `<item><networkInterfaceId>eni-0bbbbbbbbbbbbbbbb</networkInterfaceId><status>available</status><interfaceType>interface</interfaceType><requesterManaged>false</requesterManaged><tagSet><item><key>gleaner-owner</key><value>${VM}</value></item></tagSet></item>`;
    await using server = await scripted(({ action, parameters }) => {
      if (action === 'DescribeInstances')
        return said(
          action,
          `<reservationSet>${parameters.get('IncludeManagedResources') === 'true' ? running : ''}</reservationSet>`,
        );
      if (action === 'DescribeNetworkInterfaces')
        return said(action, `<networkInterfaceSet>${eni}</networkInterfaceSet>`);
      if (action.startsWith('Delete')) deleted.push(action);
      return said(action, action === 'DescribeVolumes' ? '<volumeSet/>' : '<return>true</return>');
    });
    Object.assign(process.env, awsEnvironment(server.url));
    await sweep(testEngine(aws({ region: 'us-east-1' }) as never, new MemoryLedger(), AT_ONCE), 'sweep', {}, enforce);
    expect(deleted).toEqual([]);
  });
});

describe('other', () => {
  let s: Stage;
  beforeEach(async () => {
    s = await Stage.start();
  });
  afterEach(() => s.close());
  it('W11 a forged terminated event, the VM lives, its ENI is loose: nothing handed over', async () => {
    const vm = s.region.run();
    s.region.createEni({ tags: { [CNI]: vm } });
    for (const minutes of [6, 10, 16, 60])
      await s.event('deleted', vm, new Date(s.world.now().getTime() - minutes * MINUTE));
    expect(s.queue.sent).toEqual([]);
  });
  it('W12 events twice, out of order (terminated before running): nothing of the living, claims kept', async () => {
    const vm = s.region.run({ volumes: [{ tags: MCM('x') }] });
    await s.event('deleted', vm, new Date(s.world.now().getTime() - 20 * MINUTE));
    await s.event('started', vm);
    await s.event('deleted', vm, new Date(s.world.now().getTime() - 20 * MINUTE));
    expect(s.queue.sent).toEqual([]);
    expect(s.deletes()).toEqual([]);
  });
});
