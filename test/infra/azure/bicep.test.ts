import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { check } from '../../../infra/azure/check.ts';
import { compilerMissing } from '../../../infra/azure/compiler.ts';
import { declared, roleActions, template } from '../../support/azure-role.ts';

const missing = compilerMissing();
if (missing) console.warn(`skipped: ${missing}`);

const ROOT = resolve(import.meta.dirname, '../../..');
const of = (type: string) => declared().filter((one) => one.type === type);
const only = (type: string) => of(type)[0]?.properties as Record<string, never>;

describe.skipIf(missing !== undefined)('the Bicep deployment', () => {
  it('compiles, is linted and formatted, and deploys what the snapshot says: the compiler has nothing to say', () => {
    expect(check()).toEqual([]);
    // The compiler starts anew for each of a dozen questions.
  }, 240_000);

  it('may read VMs, NICs and disks, and delete NICs and disks in enforce only', () => {
    const reads = [
      'Microsoft.Compute/virtualMachines/read',
      'Microsoft.Compute/disks/read',
      'Microsoft.Network/networkInterfaces/read',
    ];
    const follow = [
      'Microsoft.ResourceGraph/resources/read',
      'Microsoft.Compute/locations/*/read',
      'Microsoft.Network/locations/*/read',
    ];
    const deletes = ['Microsoft.Compute/disks/delete', 'Microsoft.Network/networkInterfaces/delete'];
    expect(roleActions('observe')).toEqual([...reads, ...follow]);
    expect(roleActions('enforce')).toEqual([...reads, ...deletes, ...follow]);
    const [role] = of('Microsoft.Authorization/roleDefinitions').filter(({ name }) => name.includes("'role')"));
    expect(JSON.stringify(role?.properties)).toContain("if(equals(parameters('mode'), 'enforce')");
  });

  /** The adapters' calls, as their counter names them, and what ARM asks for. */
  const ACTIONS: Readonly<Record<string, string>> = {
    ResourceGraph_Resources: 'Microsoft.ResourceGraph/resources/read',
    VirtualMachines_Get: 'Microsoft.Compute/virtualMachines/read',
    Disks_Get: 'Microsoft.Compute/disks/read',
    Disks_ListByResourceGroup: 'Microsoft.Compute/disks/read',
    Disks_Delete: 'Microsoft.Compute/disks/delete',
    Disks_Poll: 'Microsoft.Compute/locations/*/read',
    NetworkInterfaces_Get: 'Microsoft.Network/networkInterfaces/read',
    NetworkInterfaces_ListByResourceGroup: 'Microsoft.Network/networkInterfaces/read',
    NetworkInterfaces_Delete: 'Microsoft.Network/networkInterfaces/delete',
    NetworkInterfaces_Poll: 'Microsoft.Network/locations/*/read',
  };

  it('allows every call of the adapters, and nothing that they do not call', () => {
    const allowed = roleActions('enforce');
    expect([...new Set(Object.values(ACTIONS))].sort()).toEqual([...allowed].sort());
  });

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
    const settings = JSON.stringify(only('Microsoft.Web/sites/config'));
    expect(settings).not.toMatch(/AccountKey|listKeys/i);
    expect(settings).toContain('AzureWebJobsStorage__accountName');
  });

  it('delivers the events of VMs to the function, tries for a day, and keeps what it could not deliver', () => {
    expect(only('Microsoft.EventGrid/systemTopics/eventSubscriptions')).toMatchObject({
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
    expect(of('Microsoft.EventGrid/systemTopics/eventSubscriptions')[0]?.condition).toContain('eventSubscription');
    expect(JSON.stringify(of('Microsoft.EventGrid/systemTopics/eventSubscriptions'))).toContain("'vmEvent'");
  });

  it('makes the queues, their poison queues and the table that the functions name', () => {
    const text = JSON.stringify(template());
    for (const queue of ['gleaner-events', 'gleaner-reap', 'gleaner-work']) expect(text).toContain(queue);
    expect(text).toContain("format('{0}-poison'");
    const main = readFileSync(join(ROOT, 'functions/azure/main.ts'), 'utf8');
    for (const [, queue] of main.matchAll(/queueName: '([^']+)'/g)) expect(text).toContain(queue);
  });

  it('sets every setting that the functions require', () => {
    const environment = readFileSync(join(ROOT, 'functions/azure/environment.ts'), 'utf8');
    const read = [...environment.matchAll(/^ {2}((?:GLEANER|AZURE)_\w+):/gm)].map((match) => match[1] ?? '');
    // A connection string is Azurite's, a client id that of an identity of one's own.
    const notSet = ['GLEANER_STORAGE', 'GLEANER_STORAGE__clientId'];
    const text = JSON.stringify(template());
    expect(read.length).toBeGreaterThan(10);
    expect(read.filter((name) => !notSet.includes(name) && !text.includes(name))).toEqual([]);
  });

  it('tells people of what is given up, of the breaker, of failures, of silence and of dead letters', () => {
    const text = JSON.stringify(template());
    for (const sign of [
      'gleaner.item-given-up',
      'gleaner.breaker-tripped',
      'gleaner.sweep-finished',
      '-poison',
      'success == false',
    ]) {
      expect(text).toContain(sign);
    }
    expect(of('Microsoft.Insights/metricAlerts')).toHaveLength(1);
    expect(of('Microsoft.Insights/workbooks')).toHaveLength(1);
  });

  it('refuses what no deployment can have', () => {
    const { parameters } = template() as unknown as { parameters: Record<string, Record<string, unknown>> };
    expect(parameters.mode).toMatchObject({ defaultValue: 'observe', allowedValues: ['observe', 'enforce'] });
    expect(parameters.name).toMatchObject({ minLength: 3, maxLength: 11 });
    expect(parameters.retentionDays).toMatchObject({ minValue: 30, maxValue: 730 });
    expect(parameters.eventSubscription).toMatchObject({ defaultValue: false });
  });
});
