import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readEnvironment } from '../../../functions/azure/environment.ts';
import { check } from '../../../infra/azure/check.ts';
import { bicep } from '../../../infra/azure/compiler.ts';
import { deployed } from '../../support/azure-role.ts';
import { missing } from './support.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const DELIVERY = 'Microsoft.EventGrid/systemTopics/eventSubscriptions';
const full = { eventSubscription: true, alertEmail: 'owner@example.com', policy: { grace: '1h' } };
const of = (type: string, parameters: object = full) =>
  deployed({ ...parameters }).filter((one) => one.type.toLowerCase() === type.toLowerCase());
const only = (type: string) => of(type)[0]?.properties as Record<string, never>;
const names = (type: string) => of(type).map(({ name }) => name.split('/').at(-1) ?? '');

describe.skipIf(missing !== undefined)('the Bicep deployment', () => {
  it('compiles, is linted and formatted, and deploys what the snapshot says: the compiler has nothing to say', () => {
    expect(check()).toEqual([]);
    // The compiler starts anew for each of a dozen questions.
  }, 240_000);

  it('reaches its own account by identity only, and nothing over plain http', () => {
    const accounts = of('Microsoft.Storage/storageAccounts');
    const own = accounts.find(({ properties }) => properties?.allowSharedKeyAccess === false);
    expect(accounts).toHaveLength(2);
    expect(own?.properties).toMatchObject({
      allowBlobPublicAccess: false,
      minimumTlsVersion: 'TLS1_2',
      supportsHttpsTrafficOnly: true,
    });
    for (const { properties } of accounts)
      expect(properties).toMatchObject({ allowBlobPublicAccess: false, minimumTlsVersion: 'TLS1_2' });
    expect(only('Microsoft.Web/sites')).toMatchObject({
      httpsOnly: true,
      siteConfig: { ftpsState: 'Disabled', minTlsVersion: '1.2' },
    });
    expect(of('Microsoft.Web/sites/basicPublishingCredentialsPolicies').map(({ properties }) => properties)).toEqual([
      { allow: false },
      { allow: false },
    ]);
    const settings = only('Microsoft.Web/sites/config');
    expect(JSON.stringify(settings)).not.toMatch(/AccountKey|listKeys|SharedAccess/i);
    expect(settings).toMatchObject({
      AzureWebJobsStorage__accountName: expect.stringContaining("format('storage-{0}'"),
      GLEANER_STORAGE__credential: 'managedidentity',
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'Authorization=AAD',
    });
    expect(only('Microsoft.Insights/components')).toMatchObject({ DisableLocalAuth: true });
  });

  it('delivers the events of VMs to the function, tries for a day, and keeps what it could not deliver', () => {
    expect(only(DELIVERY)).toMatchObject({
      filter: {
        includedEventTypes: ['Microsoft.Resources.ResourceWriteSuccess', 'Microsoft.Resources.ResourceDeleteSuccess'],
        advancedFilters: [
          {
            key: 'data.operationName',
            values: ['Microsoft.Compute/virtualMachines/write', 'Microsoft.Compute/virtualMachines/delete'],
          },
        ],
      },
      retryPolicy: { maxDeliveryAttempts: 30, eventTimeToLiveInMinutes: 1440 },
      deadLetterDestination: { endpointType: 'StorageBlob' },
    });
    const text = JSON.stringify(of(DELIVERY));
    expect(text).toMatch(/Microsoft\.Web\/sites\/functions'.+'vmEvent'/);
    expect(of(DELIVERY, { eventSubscription: false })).toEqual([]);
  });

  it('delivers from the topic that the subscription has, and makes none beside it', () => {
    const group = '/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/Shared';
    const systemTopicId = `${group}/providers/Microsoft.EventGrid/systemTopics/ours`;
    const parameters = { ...full, systemTopicId };
    expect(of('Microsoft.EventGrid/systemTopics')).toHaveLength(1);
    expect(of('Microsoft.EventGrid/systemTopics', parameters)).toEqual([]);
    expect(of(DELIVERY, parameters).map(({ id }) => id)).toEqual([
      `${systemTopicId}/eventSubscriptions/gleaner-vm-events`,
    ]);
  });

  it('makes the queues, their poison queues and the table that the functions name', () => {
    const queues = ['gleaner-events', 'gleaner-reap', 'gleaner-work'];
    const main = readFileSync(join(ROOT, 'functions/azure/main.ts'), 'utf8');
    expect([...main.matchAll(/queueName: '([^']+)'/g)].map((match) => match[1] ?? '').toSorted()).toEqual(queues);
    expect(names('Microsoft.Storage/storageAccounts/queueServices/queues').toSorted()).toEqual(
      queues.flatMap((queue) => [queue, `${queue}-poison`]),
    );
    expect(names('Microsoft.Storage/storageAccounts/tableServices/tables')).toEqual(['gleaner']);
  });

  it('sets every setting that the functions read, to values that they take', () => {
    const settings = only('Microsoft.Web/sites/config') as Record<string, string>;
    const environment = readFileSync(join(ROOT, 'functions/azure/environment.ts'), 'utf8');
    const read = [...environment.matchAll(/^ {2}((?:GLEANER|AZURE)_\w+):/gm)].map((match) => match[1] ?? '');
    // A connection string is Azurite's, a client id that of an identity of one's own.
    const notSet = ['GLEANER_STORAGE', 'GLEANER_STORAGE__clientId'];
    expect(read.length).toBeGreaterThan(10);
    expect(read.filter((name) => !notSet.includes(name) && !(name in settings))).toEqual([]);
    // What Azure alone can answer: the addresses of its own services and of the account's.
    const known = Object.entries(settings).map(([name, value]) => [
      name,
      value.startsWith('[') ? 'https://a.example/' : value,
    ]);
    const parsed = readEnvironment(Object.fromEntries(known));
    expect(parsed).toMatchObject({ mode: 'observe', table: 'gleaner', resourceGroups: undefined, logLevel: 'info' });
    expect(parsed.policy.grace).toBe(3_600_000);
  });

  it('tells people of what is given up, of the breaker, of failures, of silence and of lost events', () => {
    const queries = of('Microsoft.Insights/scheduledQueryRules').map(({ properties }) => JSON.stringify(properties));
    for (const sign of [
      'gleaner.item-given-up',
      'gleaner.breaker-tripped',
      'gleaner.sweep-finished',
      '-poison',
      'success == false',
    ]) {
      expect(queries.filter((query) => query.includes(sign))).toHaveLength(1);
    }
    const metrics = JSON.stringify(of('Microsoft.Insights/metricAlerts'));
    for (const sign of ['DeadLetteredCount', 'DroppedEventCount', 'gleaner-vm-events']) expect(metrics).toContain(sign);
    expect(JSON.stringify(of('Microsoft.Insights/actionGroups'))).toContain('owner@example.com');
    expect(of('Microsoft.Insights/actionGroups', {})).toEqual([]);
    expect(of('Microsoft.Insights/workbooks')).toHaveLength(1);
  });

  it.each([
    { mode: 'delete' },
    { name: 'ab' },
    { name: 'a-name-too-long' },
    { retentionDays: 7 },
    { logLevel: 'error' },
    { schedule: '* * *' },
    { resourceGroups: 'shoot--one' },
  ])('refuses %j', (parameters) => {
    expect(() => deployed(parameters)).toThrow(/BCP\d+|InvalidTemplate|parameter/i);
  });

  it('observes, and delivers no events, unless it is told to', () => {
    const { parameters } = JSON.parse(bicep('build', 'main.bicep', '--stdout').stdout);
    expect(parameters).toMatchObject({ mode: { defaultValue: 'observe' }, eventSubscription: { defaultValue: false } });
  });
});
