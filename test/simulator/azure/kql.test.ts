import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complaints } from '../../support/kusto.ts';
import { fails, start } from './clients.ts';

const PATH = '/providers/Microsoft.ResourceGraph/resources?api-version=2024-04-01';
let at: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  at = await start();
  const { sub } = at;
  const { vm } = sub.createVm('vm', { dataDisks: 0 });
  sub.createDisk('Free-Disk', { tags: { 'a.b/c': 'One two', plain: "it's" }, properties: { diskState: 'Unattached' } });
  sub.createDisk('exported', { group: 'Other', tags: {}, properties: { diskState: 'ActiveSAS' } });
  expect(vm).toContain('/vm');
});
afterAll(() => at.simulator.close());

/** All but the VM and its two, so that a row says which condition let it pass. */
const ALL = ['vm-nic', 'vm-os-disk', 'vm', 'Free-Disk', 'exported'];
const without = (...names: string[]) => ALL.filter((name) => !names.includes(name)).sort();

describe('a condition', () => {
  it.each<[string, string[]]>([
    ["type =~ 'Microsoft.Compute/DISKS'", ['Free-Disk', 'exported', 'vm-os-disk']],
    ["type == 'Microsoft.Compute/disks'", []],
    ["type != 'microsoft.compute/disks'", ['vm', 'vm-nic']],
    ["name !~ 'FREE-disk'", without('Free-Disk')],
    ["name in~ ('VM', 'free-disk')", ['Free-Disk', 'vm']],
    ["name in ('VM', 'Free-Disk')", ['Free-Disk']],
    ["name !in~ ('VM', 'free-disk')", without('vm', 'Free-Disk')],
    ["name !in ('vm')", without('vm')],
    ["name has 'disk'", ['Free-Disk', 'vm-os-disk']],
    ["name has 'dis'", []],
    ["name !has 'DISK'", without('Free-Disk', 'vm-os-disk')],
    ["name has_cs 'Disk'", ['Free-Disk']],
    ["name contains 'DIS'", ['Free-Disk', 'vm-os-disk']],
    ["name contains_cs 'DIS'", []],
    ["name !contains 'm'", ['Free-Disk', 'exported']],
    ["name startswith 'VM-'", ['vm-nic', 'vm-os-disk']],
    ["name !startswith 'VM'", ['Free-Disk', 'exported']],
    ["name endswith_cs 'Disk'", ['Free-Disk']],
    ["name!='vm'and name!='vm-nic'and not(name=~'EXPORTED')", ['Free-Disk', 'vm-os-disk']],
    ["name == 'vm' or name == 'vm-nic' and type =~ 'nothing'", ['vm']],
    ["(name == 'vm' or name == 'vm-nic') and type has 'networkInterfaces'", ['vm-nic']],
    ["resourceGroup == 'other'", ['exported']],
    ['isempty(managedBy)', without('vm-os-disk')],
    ['isnotempty(managedBy)', ['vm-os-disk']],
    ['isnull(managedBy)', []],
    ['isnotnull(managedBy)', ALL.toSorted()],
    ['isnotnull(properties.virtualMachine)', ['vm-nic']],
    ['isnull(properties.virtualMachine.id)', without('vm-nic')],
    ['isempty(properties.diskState)', ['vm', 'vm-nic']],
    ["isnotempty(tags['a.b/c'])", ['Free-Disk']],
    ["tostring(tags['a.b/c']) =~ 'ONE TWO'", ['Free-Disk']],
    ['tostring(tags["plain"]) == "it\'s"', ['Free-Disk']],
    ["tostring(tags.plain) == 'it\\'s'", ['Free-Disk']],
    ["tostring(tags) has 'two'", ['Free-Disk']],
    ["tolower(name) == 'free-disk' or toupper(name) == 'EXPORTED'", ['Free-Disk', 'exported']],
    ["tostring(properties.networkProfile.networkInterfaces[0].id) endswith '/VM-NIC'", ['vm']],
    ["tostring(properties.networkProfile.networkInterfaces[7].id) != ''", []],
    ["tostring(properties.constructor) != ''", []],
    ["tostring(sku.name) =~ 'premium_lrs' and tostring(properties.diskState) in~ ('unattached')", ['Free-Disk']],
  ])('%s', async (where, expected) => {
    const query = `resources | where ${where} | project name | order by name asc`;
    const { data } = await at.ask(query);
    expect((data as { name: string }[]).map(({ name }) => name).sort()).toEqual(expected.toSorted());
    expect(complaints(query)).toEqual([]);
  });
});

describe('a table', () => {
  it.each<[string, object[]]>([
    ["where name == 'exported' | project properties.diskState", [{ properties_diskState: 'ActiveSAS' }]],
    [
      "where name == 'exported' | project id = tolower(name), none = tags['x'], managedBy",
      [{ id: 'exported', none: null, managedBy: '' }],
    ],
    [
      "extend state = tostring(properties.diskState) | where state == 'ActiveSAS' | project name",
      [{ name: 'exported' }],
    ],
    [
      "where type has 'disks' | project state = tostring(properties.diskState), name | sort by state desc, name asc | limit 2",
      [
        { state: 'Unattached', name: 'Free-Disk' },
        { state: 'Attached', name: 'vm-os-disk' },
      ],
    ],
    ["where type has 'disks' | project name | order by name | take 1", [{ name: 'vm-os-disk' }]],
  ])('%s', async (steps, expected) => {
    expect((await at.ask(`resources\n| ${steps}`)).data).toEqual(expected);
    expect(complaints(`resources | ${steps}`)).toEqual([]);
  });
});

describe('a query that is not simulated', () => {
  it.each<[string, { line?: number; characterPositionInLine: number; token: string; message: RegExp }]>([
    [
      "resources | where properties.diskState =~ 'x'",
      { characterPositionInLine: 18, token: 'properties', message: /must be cast/ },
    ],
    [
      'resources\n| where isnull(colour)',
      { line: 2, characterPositionInLine: 15, token: 'colour', message: /no column 'colour'/ },
    ],
    ['resources | project name | order by id', { characterPositionInLine: 36, token: 'id', message: /no column 'id'/ }],
    ['resources | where isnotempty(type.x)', { characterPositionInLine: 29, token: 'type', message: /no properties/ }],
    [
      'resources | where strlen(name) == 3',
      { characterPositionInLine: 18, token: 'strlen', message: /'strlen' is not simulated/ },
    ],
    ["resources | where name in ('a', name)", { characterPositionInLine: 32, token: 'name', message: /a text/ }],
    ["resources | where name = 'a'", { characterPositionInLine: 23, token: '=', message: /an operator/ }],
    ['resources | where name', { characterPositionInLine: 22, token: '<EOF>', message: /an operator/ }],
    ["resources | where name == 'a", { characterPositionInLine: 26, token: "'", message: /no token/ }],
    ['resources | summarize count()', { characterPositionInLine: 12, token: 'summarize', message: /where, extend/ }],
    ['resourcecontainers', { characterPositionInLine: 0, token: 'resourcecontainers', message: /table/ }],
  ])('%s is refused, and says where and why', async (query, { line = 1, message, ...place }) => {
    await fails(at.ask(query), 'BadRequest', 400);
    // The SDK leaves the place out.
    const answer = await at.raw(PATH, 'POST', { subscriptions: [at.sub.id], query });
    const detail = { code: 'ParserFailure', line, message: expect.stringMatching(message), ...place };
    expect(await answer.json()).toMatchObject({ error: { details: [{ code: 'InvalidQuery' }, detail] } });
  });

  it('nor one without a query, or a body that is no JSON', async () => {
    expect((await at.raw(PATH, 'POST', {})).status).toBe(400);
    const bad = await fetch(`${at.simulator.url}${PATH}`, { method: 'POST', body: '{' });
    expect([bad.status, await bad.json()]).toMatchObject([400, { error: { code: 'InvalidRequestContent' } }]);
    await fails(at.ask('resources', { resultFormat: 'table' }), 'BadRequest', 400);
  });
});
