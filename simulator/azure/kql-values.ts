import type { Tokens } from './kql-tokens.ts';

/** What a query's row is: a resource as Resource Graph holds it. */
export type Row = Readonly<Record<string, unknown>>;
export type Test = (row: Row) => boolean;
export type Type = 'string' | 'dynamic';
export type Columns = ReadonlyMap<string, Type>;

/** A value of each row. A text that is missing is empty, a dynamic value that is missing is null. */
export interface Scalar {
  readonly type: Type;
  of(row: Row): unknown;
}

type Compare = (left: string, right: string) => boolean;

const ignoringCase =
  (compare: Compare): Compare =>
  (left, right) =>
    compare(left.toLowerCase(), right.toLowerCase());
const negated =
  (compare: Compare): Compare =>
  (left, right) =>
    !compare(left, right);
const equals: Compare = (left, right) => left === right;
const contains: Compare = (left, right) => left.includes(right);
const startsWith: Compare = (left, right) => left.startsWith(right);
const endsWith: Compare = (left, right) => left.endsWith(right);
/** As a whole term: letters and digits end at anything else. */
const has: Compare = (left, right) => {
  for (let at = left.indexOf(right); at >= 0; at = left.indexOf(right, at + 1)) {
    if (!isTermCharacter(left[at - 1]) && !isTermCharacter(left[at + right.length])) return true;
  }
  return false;
};
const isTermCharacter = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

/** Operators between two texts. Those in words ignore case unless they end in `_cs`. */
const OPERATORS: ReadonlyMap<string, Compare> = new Map([
  ['==', equals],
  ['!=', negated(equals)],
  ['=~', ignoringCase(equals)],
  ['!~', negated(ignoringCase(equals))],
  ...Object.entries({ contains, startswith: startsWith, endswith: endsWith, has }).flatMap(([name, compare]) => [
    [name, ignoringCase(compare)] as const,
    [`!${name}`, negated(ignoringCase(compare))] as const,
    [`${name}_cs`, compare] as const,
    [`!${name}_cs`, negated(compare)] as const,
  ]),
]);

/** Operators between a text and a list of texts. */
const LIST_OPERATORS: ReadonlyMap<string, (left: string, right: readonly string[]) => boolean> = new Map([
  ['in', (left, right) => right.includes(left)],
  ['!in', (left, right) => !right.includes(left)],
  ['in~', (left, right) => right.some((one) => ignoringCase(equals)(left, one))],
  ['!in~', (left, right) => !right.some((one) => ignoringCase(equals)(left, one))],
]);

/** Functions of one value that say yes or no. A text is never null, so `isnull` is never true of one. */
const PREDICATES: ReadonlyMap<string, (value: unknown, type: Type) => boolean> = new Map([
  ['isempty', (value) => isEmpty(value)],
  ['isnotempty', (value) => !isEmpty(value)],
  ['isnull', (value, type) => type === 'dynamic' && isMissing(value)],
  ['isnotnull', (value, type) => type === 'string' || !isMissing(value)],
]);

const isMissing = (value: unknown) => value === undefined || value === null;
const isEmpty = (value: unknown) => isMissing(value) || value === '';

/** @throws ArmError */
export function condition(tokens: Tokens, columns: Columns): Test {
  const tests = [conjunction(tokens, columns)];
  while (tokens.take('or')) tests.push(conjunction(tokens, columns));
  return (row) => tests.some((test) => test(row));
}

function conjunction(tokens: Tokens, columns: Columns): Test {
  const tests = [predicate(tokens, columns)];
  while (tokens.take('and')) tests.push(predicate(tokens, columns));
  return (row) => tests.every((test) => test(row));
}

function predicate(tokens: Tokens, columns: Columns): Test {
  const { kind, text } = tokens.peek;
  if (kind === 'sign' && text === '(') return tokens.closed(() => condition(tokens, columns));
  if (kind === 'word' && isCall(tokens)) {
    if (tokens.take('not')) {
      const test = tokens.closed(() => condition(tokens, columns));
      return (row) => !test(row);
    }
    const holds = PREDICATES.get(text);
    if (holds) {
      tokens.expect(text);
      const value = tokens.closed(() => scalar(tokens, columns));
      return (row) => holds(value.of(row), value.type);
    }
  }
  return comparison(tokens, columns);
}

function comparison(tokens: Tokens, columns: Columns): Test {
  const left = text(tokens, columns);
  const name = tokens.peek.kind === 'text' ? '' : tokens.peek.text;
  const ofList = LIST_OPERATORS.get(name);
  if (ofList) {
    tokens.expect(name);
    const values = tokens.closed(() => tokens.list(() => tokens.next('text', 'a text')));
    return (row) => ofList(left(row), values);
  }
  const compare = OPERATORS.get(name);
  if (!compare) throw tokens.refusal('expected an operator');
  tokens.expect(name);
  const right = text(tokens, columns);
  return (row) => compare(left(row), right(row));
}

/** A value that can be compared and ordered by: a text, or a dynamic value that was cast. @throws ArmError */
export function text(tokens: Tokens, columns: Columns): (row: Row) => string {
  const start = tokens.peek;
  const value = scalar(tokens, columns);
  if (value.type === 'string') return (row) => value.of(row) as string;
  throw tokens.refusal('a dynamic value must be cast, as by tostring(), before it is compared or ordered by', start);
}

/** @throws ArmError */
export function scalar(tokens: Tokens, columns: Columns): Scalar {
  const { kind, text: word } = tokens.peek;
  if (kind === 'text') {
    const literal = tokens.next('text', 'a text');
    return { type: 'string', of: () => literal };
  }
  if (kind === 'word' && isCall(tokens)) return call(word, tokens, columns);
  return path(tokens, columns).value;
}

function call(name: string, tokens: Tokens, columns: Columns): Scalar {
  if (tokens.take('tostring')) {
    const value = tokens.closed(() => scalar(tokens, columns));
    return { type: 'string', of: (row) => textOf(value.of(row)) };
  }
  for (const [known, change] of [
    ['tolower', (value: string) => value.toLowerCase()],
    ['toupper', (value: string) => value.toUpperCase()],
  ] as const) {
    if (!tokens.take(known)) continue;
    const value = tokens.closed(() => text(tokens, columns));
    return { type: 'string', of: (row) => change(value(row)) };
  }
  throw tokens.refusal(`the function '${name}' is not simulated`);
}

const isCall = (tokens: Tokens) => tokens.second?.kind === 'sign' && tokens.second.text === '(';

/** A column, or a place inside a dynamic one: `properties.diskState`, `tags['a.b']`, `zones[0]`. @throws ArmError */
export function path(tokens: Tokens, columns: Columns): { readonly name: string; readonly value: Scalar } {
  const start = tokens.peek;
  const column = tokens.next('word', 'a column');
  const type = columns.get(column);
  if (type === undefined) throw tokens.refusal(`there is no column '${column}'`, start);
  const keys: string[] = [];
  for (;;) {
    if (tokens.take('.')) keys.push(tokens.next('word', 'a property'));
    else if (tokens.take('[')) {
      keys.push(tokens.peek.kind === 'number' ? tokens.next('number', 'a number') : tokens.next('text', 'a text'));
      tokens.expect(']');
    } else break;
  }
  if (type === 'string' && keys.length > 0) throw tokens.refusal(`'${column}' is a text and has no properties`, start);
  const of = (row: Row) => keys.reduce(inside, row[column]) ?? (type === 'string' ? '' : null);
  return { name: [column, ...keys].join('_'), value: { type, of } };
}

function inside(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Row)[key] : undefined;
}

function textOf(value: unknown): string {
  if (isMissing(value)) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
