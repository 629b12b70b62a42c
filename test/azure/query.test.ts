import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { DISK_TYPE, NIC_TYPE } from '../../shared/azure/arm-id.ts';
import { candidateQuery } from '../../shared/azure/resource-graph.ts';

interface Diagnostics {
  readonly Count: number;
  getItem(index: number): { readonly Message: string };
}
/** As much of Kusto's own language service as is used here. */
interface KustoLanguage {
  readonly KustoCode: { ParseAndAnalyze(query: string, globals: unknown): { GetDiagnostics(): Diagnostics } };
  readonly GlobalState: { readonly Default: { WithDatabase(database: unknown): unknown } };
  readonly Symbols: {
    readonly TableSymbol: { From(schema: string): { WithName(name: string): unknown } };
    readonly DatabaseSymbol: { readonly $ctor1: new (name: string, members: unknown[]) => unknown };
  };
}

const require = createRequire(import.meta.url);
require('@kusto/language-service-next/bridge.js');
require('@kusto/language-service-next/Kusto.Language.Bridge.js');
const { Language } = (globalThis as unknown as { Kusto: { Language: KustoLanguage } }).Kusto;

/** What Kusto's own language service says against a query on Resource Graph's table. */
function complaints(query: string): string[] {
  const { Symbols, GlobalState, KustoCode } = Language;
  const schema = '(id:string, name:string, type:string, tags:dynamic, properties:dynamic)';
  const database = new Symbols.DatabaseSymbol.$ctor1('arg', [Symbols.TableSymbol.From(schema).WithName('resources')]);
  const diagnostics = KustoCode.ParseAndAnalyze(query, GlobalState.Default.WithDatabase(database)).GetDiagnostics();
  return Array.from({ length: diagnostics.Count }, (_, index) => diagnostics.getItem(index).Message);
}

it.each([
  [[NIC_TYPE, DISK_TYPE], { ownerTags: ['gleaner-owner'] }],
  [[DISK_TYPE], { ownerTags: ["it's", 'back\\slash', 'pipe | take 1', "') or ('"], cluster: 'c1' }],
])('Kusto takes the query for %j %j', (types, filter) => {
  expect(complaints(candidateQuery(types, filter))).toEqual([]);
});

it('and would complain of a wrong one', () => {
  expect(complaints("resources | where nothing =~ 'x' | order bi id")).not.toEqual([]);
});
