import { createRequire } from 'node:module';

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

/** Resource Graph's table of resources, as far as queries are tried on it here. */
const SCHEMA =
  '(id:string, name:string, type:string, location:string, resourceGroup:string, subscriptionId:string, managedBy:string, sku:dynamic, zones:dynamic, tags:dynamic, properties:dynamic)';

/** What Kusto's own language service says against a query on Resource Graph's table. */
export function complaints(query: string): string[] {
  const { Symbols, GlobalState, KustoCode } = Language;
  const database = new Symbols.DatabaseSymbol.$ctor1('arg', [Symbols.TableSymbol.From(SCHEMA).WithName('resources')]);
  const diagnostics = KustoCode.ParseAndAnalyze(query, GlobalState.Default.WithDatabase(database)).GetDiagnostics();
  return Array.from({ length: diagnostics.Count }, (_, index) => diagnostics.getItem(index).Message);
}
