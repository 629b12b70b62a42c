import { Tokens } from './kql-tokens.ts';
import { type Columns, condition, path, type Row, type Scalar, scalar, type Type, text } from './kql-values.ts';

export interface Query {
  run(rows: readonly Row[]): Row[];
}

/** The columns of Resource Graph's table `resources`. */
const RESOURCES: Columns = new Map<string, Type>([
  ...['id', 'name', 'type', 'tenantId', 'kind', 'location', 'resourceGroup', 'subscriptionId', 'managedBy'].map(
    (column) => [column, 'string'] as const,
  ),
  ...['sku', 'plan', 'properties', 'tags', 'identity', 'zones', 'extendedLocation'].map(
    (column) => [column, 'dynamic'] as const,
  ),
]);

/**
 * The part of Resource Graph's KQL that is about naming candidates: the table `resources` with `where`, `extend`,
 * `project`, `order by` and `take`. In conditions: `and`, `or`, `not`, the operators of texts, `in`, `isempty`, `isnull`,
 * `tostring`, `tolower`, `toupper`. All else is refused as Resource Graph refuses a query.
 * @throws ArmError 400 BadRequest
 */
export function parseQuery(query: string): Query {
  const tokens = new Tokens(query);
  if (!tokens.take('resources') && !tokens.take('Resources')) throw tokens.refusal("expected the table 'resources'");
  const steps: ((rows: Row[]) => Row[])[] = [];
  let columns = RESOURCES;
  while (tokens.peek.kind !== 'end') {
    tokens.expect('|');
    const step = stepOf(tokens, columns);
    steps.push(step.run);
    columns = step.columns ?? columns;
  }
  return { run: (rows) => steps.reduce((left, step) => step(left), [...rows]) };
}

interface Step {
  readonly run: (rows: Row[]) => Row[];
  /** What the rows have from here on, where the step changes it. */
  readonly columns?: Columns;
}

function stepOf(tokens: Tokens, columns: Columns): Step {
  if (tokens.take('where')) {
    const test = condition(tokens, columns);
    return { run: (rows) => rows.filter(test) };
  }
  if (tokens.take('project')) {
    const named = tokens.list(() => namedValue(tokens, columns));
    return { run: (rows) => rows.map((row) => valuesOf(named, row)), columns: typesOf(named) };
  }
  if (tokens.take('extend')) {
    const named = tokens.list(() => namedValue(tokens, columns));
    const run = (rows: Row[]) => rows.map((row) => ({ ...row, ...valuesOf(named, row) }));
    return { run, columns: new Map([...columns, ...typesOf(named)]) };
  }
  if (tokens.take('take') || tokens.take('limit')) {
    const count = Number(tokens.next('number', 'a number of rows'));
    return { run: (rows) => rows.slice(0, count) };
  }
  if (tokens.take('order') || tokens.take('sort')) {
    tokens.expect('by');
    const keys = tokens.list(() => sortKey(tokens, columns));
    return { run: (rows) => rows.toSorted((a, b) => keys.reduce((order, key) => order || key(a, b), 0)) };
  }
  throw tokens.refusal('expected an operator that is simulated: where, extend, project, take, order by');
}

type Named = readonly [name: string, value: Scalar];

/** `name = value`, or a column or a place in one, which names itself. */
function namedValue(tokens: Tokens, columns: Columns): Named {
  if (tokens.second?.kind === 'sign' && tokens.second.text === '=') {
    const name = tokens.next('word', 'a name');
    tokens.expect('=');
    return [name, scalar(tokens, columns)];
  }
  const { name, value } = path(tokens, columns);
  return [name, value];
}

const valuesOf = (named: readonly Named[], row: Row): Row =>
  Object.fromEntries(named.map(([name, value]) => [name, value.of(row)]));
const typesOf = (named: readonly Named[]): Columns => new Map(named.map(([name, { type }]) => [name, type]));

function sortKey(tokens: Tokens, columns: Columns): (a: Row, b: Row) => number {
  const value = text(tokens, columns);
  // Kusto sorts descending where nothing is said.
  const sign = tokens.take('asc') ? 1 : -1;
  if (sign < 0) tokens.take('desc');
  return (a, b) => sign * compare(value(a), value(b));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
