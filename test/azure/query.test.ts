import { expect, it } from 'vitest';
import { DISK_TYPE, NIC_TYPE } from '../../shared/azure/arm-id.ts';
import { candidateQuery } from '../../shared/azure/resource-graph.ts';
import { complaints } from '../support/kusto.ts';

it.each([
  [[NIC_TYPE, DISK_TYPE], { ownerTags: ['gleaner-owner'] }],
  [[DISK_TYPE], { ownerTags: ["it's", 'back\\slash', 'pipe | take 1', "') or ('"], cluster: 'c1' }],
])('Kusto takes the query for %j %j', (types, filter) => {
  expect(complaints(candidateQuery(types, filter))).toEqual([]);
});

it('and would complain of a wrong one', () => {
  expect(complaints("resources | where nothing =~ 'x' | order bi id")).not.toEqual([]);
});
