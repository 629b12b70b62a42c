import { describe, expect, it } from 'vitest';
import { parseAzureEvent } from '../../shared/azure/events.ts';
import { InputError } from '../../shared/core/errors.ts';
import { SUBSCRIPTION, vmId } from './scripted.ts';

const data = (operationName: string, resourceUri: string) => ({
  authorization: { action: operationName, evidence: { principalId: 'someone' } },
  claims: { name: 'A Person', 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn': 'person@example.org' },
  correlationId: 'c',
  httpRequest: { clientIpAddress: '192.0.2.7' },
  operationName,
  resourceProvider: 'Microsoft.Compute',
  resourceUri,
  status: 'Succeeded',
  subscriptionId: SUBSCRIPTION,
  tenantId: 't',
});
const grid = (kind: string, operation: string, uri: string) => ({
  subject: uri,
  eventType: `Microsoft.Resources.${kind}`,
  eventTime: '2026-12-01T11:58:00.1234567Z',
  id: 'e-1',
  topic: `/subscriptions/${SUBSCRIPTION}`,
  dataVersion: '2',
  metadataVersion: '1',
  data: data(operation, uri),
});
const cloud = (kind: string, operation: string, uri: string) => ({
  specversion: '1.0',
  id: 'e-1',
  source: `/subscriptions/${SUBSCRIPTION}`,
  subject: uri,
  type: `Microsoft.Resources.${kind}`,
  time: '2026-12-01T11:58:00.1234567Z',
  data: data(operation, uri),
});

const MIXED = vmId('VM-7').replace('resourceGroups', 'resourcegroups').replace('Shoot--One', 'SHOOT--ONE');
const DELETED = ['ResourceDeleteSuccess', 'Microsoft.Compute/virtualMachines/delete'] as const;

describe.each([
  ['event grid schema', grid],
  ['CloudEvents 1.0', cloud],
])('events in the %s', (_, make) => {
  it('a deleted VM, in mixed case, with nothing of the person who deleted it', () => {
    const [event, ...rest] = parseAzureEvent([make(...DELETED, MIXED)]);
    expect(rest).toEqual([]);
    expect(event).toEqual({
      eventId: 'e-1',
      cloud: 'azure',
      change: 'deleted',
      scopeId: `azure:${SUBSCRIPTION}`,
      vmId: MIXED,
      place: `${SUBSCRIPTION}/shoot--one`,
      time: new Date('2026-12-01T11:58:00.123Z'),
    });
    expect(JSON.stringify(event)).not.toMatch(/person|192\.0\.2\.7|someone/i);
  });

  it('alone or in an array, several in one', () => {
    const one = make(...DELETED, vmId('a'));
    const two = make('ResourceWriteSuccess', 'MICROSOFT.COMPUTE/VIRTUALMACHINES/WRITE', vmId('b'));
    expect(parseAzureEvent(one)).toHaveLength(1);
    expect(parseAzureEvent([one, two]).map(({ change }) => change)).toEqual(['deleted', 'started']);
    expect(parseAzureEvent([])).toEqual([]);
  });

  it.each([
    [
      'ResourceDeleteSuccess',
      'Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete',
      `${vmId('x').replace('virtualMachines/x', 'virtualMachineScaleSets/s/virtualMachines/0')}`,
    ],
    [
      'ResourceDeleteSuccess',
      'Microsoft.Compute/virtualMachines/delete',
      `${vmId('x').replace('virtualMachines/x', 'virtualMachineScaleSets/s/virtualMachines/0')}`,
    ],
    ['ResourceWriteSuccess', 'Microsoft.Compute/virtualMachines/extensions/write', `${vmId('x')}/extensions/e`],
    ['ResourceDeleteFailure', 'Microsoft.Compute/virtualMachines/delete', vmId('x')],
    ['ResourceActionSuccess', 'Microsoft.Compute/virtualMachines/deallocate/action', vmId('x')],
    ['ResourceWriteSuccess', 'Microsoft.Compute/virtualMachines/delete', vmId('x')],
  ])('%s of %s is none of ours', (kind, operation, uri) => {
    expect(parseAzureEvent(make(kind, operation, uri))).toEqual([]);
  });

  it.each([
    ['data.resourceUri', { data: { operationName: DELETED[1] } }],
    ['data.resourceUri', { data: { operationName: DELETED[1], resourceUri: 'vm-7' } }],
    ['data.operationName', { data: { resourceUri: vmId('a') } }],
    ['data', { data: 'text' }],
    ['id', { id: '' }],
  ])('names %s when it is wrong', (field, change) => {
    const broken = { ...make(...DELETED, vmId('a')), ...change };
    expect(() => parseAzureEvent(broken)).toThrow(InputError);
    expect(() => parseAzureEvent([broken])).toThrow(new RegExp(`^event\\.0\\.${field.replace('.', '\\.')}:`));
  });
});

it.each([null, 'x', 7, [null], [[]]])('refuses %j', (raw) => {
  expect(() => parseAzureEvent(raw)).toThrow(InputError);
});

it('refuses a time that is none', () => {
  const event = grid(...DELETED, vmId('a'));
  expect(() => parseAzureEvent({ ...event, eventTime: 'yesterday' })).toThrow(/^event\.eventTime:/);
});
