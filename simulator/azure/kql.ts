import { ArmError } from './errors.ts';

/** What a query's row is: a resource as Resource Graph holds it. */
export type Row = Readonly<Record<string, unknown>>;
type Value = string | undefined;
type Test = (row: Row) => boolean;

export interface Query {
  run(rows: readonly Row[]): Row[];
}

/**
 * The part of Resource Graph's KQL that is about naming candidates: `resources`, `where` with `and`, `or`, `not`, the
 * string operators, `isempty`, `isnotempty` and `tostring`, `project`, `order by` and `take`. All else is refused as
 * Resource Graph refuses a query.
 * @throws ArmError 400 BadRequest
 */
export function parseQuery(text: string): Query {
  const parser = new Parser(tokenize(text));
  parser.expect('resources');
  const steps: ((rows: Row[]) => Row[])[] = [];
  while (parser.peek() !== undefined) {
    parser.expect('|');
    steps.push(parser.step());
  }
  return { run: (rows) => steps.reduce((left, step) => step(left), [...rows]) };
}

interface Token {
  readonly kind: 'word' | 'text' | 'number' | 'sign';
  readonly text: string;
  readonly at: number;
}

const TOKEN = /\s*(?:([A-Za-z_][\w.]*~?)|('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(\d+)|(=~|!~|==|!=|[|(),]))/y;

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (text.slice(at).trim() !== '') {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw refused(`token '${text.slice(at).trim()[0]}' at ${at}`);
    const [whole, word, literal, number, sign] = match;
    if (word !== undefined) tokens.push({ kind: 'word', text: word, at });
    else if (literal !== undefined) tokens.push({ kind: 'text', text: unescaped(literal), at });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number, at });
    else tokens.push({ kind: 'sign', text: sign ?? '', at });
    at += whole.length;
  }
  return tokens;
}

const unescaped = (literal: string) => literal.slice(1, -1).replace(/\\(.)/g, '$1');

function refused(what: string): ArmError {
  return new ArmError(
    400,
    'BadRequest',
    'Please provide below info when asking for support: timestamp, correlationId.',
    {
      details: [
        {
          code: 'InvalidQuery',
          message:
            'Query is invalid. Please refer to the documentation for the Azure Resource Graph service and fix the error before retrying.',
        },
        { code: 'ParserFailure', message: `ParserFailure: ${what}` },
      ],
    },
  );
}

/** `type =~ 'x'`: both sides known to be texts. KQL's operators with `~`, and `contains`, ignore case. */
const OPERATORS: Readonly<Record<string, (left: string, right: string) => boolean>> = {
  '==': (left, right) => left === right,
  '!=': (left, right) => left !== right,
  '=~': (left, right) => left.toLowerCase() === right.toLowerCase(),
  '!~': (left, right) => left.toLowerCase() !== right.toLowerCase(),
  contains: (left, right) => left.toLowerCase().includes(right.toLowerCase()),
  startswith: (left, right) => left.toLowerCase().startsWith(right.toLowerCase()),
  endswith: (left, right) => left.toLowerCase().endsWith(right.toLowerCase()),
};
const TEXT_COLUMNS = new Set(['id', 'name', 'type', 'location', 'resourceGroup', 'subscriptionId']);
const DYNAMIC_COLUMNS = new Set(['tags', 'properties', 'sku']);

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(): string | undefined {
    const token = this.#tokens[this.#at];
    return token?.kind === 'text' ? 'a text' : token?.text;
  }

  expect(text: string): void {
    if (!this.#take(text)) throw refused(`'${this.peek() ?? 'the end'}' instead of '${text}'`);
  }

  step(): (rows: Row[]) => Row[] {
    if (this.#take('where')) {
      const test = this.#or();
      return (rows) => rows.filter(test);
    }
    if (this.#take('project')) {
      const columns = this.#list(() => this.#column());
      return (rows) => rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])));
    }
    if (this.#take('take') || this.#take('limit')) {
      const count = Number(this.#next('number').text);
      return (rows) => rows.slice(0, count);
    }
    this.expect('order');
    this.expect('by');
    const column = this.#column();
    // Kusto sorts descending where nothing is said.
    const sign = this.#take('asc') ? 1 : -1;
    if (sign < 0) this.#take('desc');
    return (rows) => rows.toSorted((a, b) => sign * compare(String(a[column]), String(b[column])));
  }

  #or(): Test {
    const tests = [this.#and()];
    while (this.#take('or')) tests.push(this.#and());
    return (row) => tests.some((test) => test(row));
  }

  #and(): Test {
    const tests = [this.#one()];
    while (this.#take('and')) tests.push(this.#one());
    return (row) => tests.every((test) => test(row));
  }

  #one(): Test {
    if (this.#take('(')) return this.#closed(this.#or());
    if (this.#take('not')) {
      this.expect('(');
      const test = this.#closed(this.#or());
      return (row) => !test(row);
    }
    for (const [name, wanted] of [
      ['isempty', true],
      ['isnotempty', false],
    ] as const) {
      if (!this.#take(name)) continue;
      this.expect('(');
      const value = this.#closed(this.#value());
      return (row) => ((value(row) ?? '') === '') === wanted;
    }
    const left = this.#value();
    const name = this.peek() ?? '';
    const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name] : undefined;
    if (!operator) throw refused(`operator '${name}'`);
    this.#at += 1;
    const right = this.#value();
    return (row) => operator(left(row) ?? '', right(row) ?? '');
  }

  #value(): (row: Row) => Value {
    const token = this.#tokens[this.#at];
    if (token?.kind === 'text') {
      this.#at += 1;
      return () => token.text;
    }
    if (this.#take('tostring')) {
      this.expect('(');
      const path = this.#closed(this.#next('word').text.split('.'));
      if (!TEXT_COLUMNS.has(path[0] ?? '') && !DYNAMIC_COLUMNS.has(path[0] ?? '')) throw refused(`column '${path[0]}'`);
      return (row) => textOf(path.reduce<unknown>((value, key) => (value as Row | undefined)?.[key], row));
    }
    const column = this.#column();
    if (!TEXT_COLUMNS.has(column)) throw refused(`'${column}' is dynamic and must be cast before it is compared`);
    return (row) => textOf(row[column]);
  }

  #column(): string {
    const { text } = this.#next('word');
    if (!TEXT_COLUMNS.has(text) && !DYNAMIC_COLUMNS.has(text)) throw refused(`column '${text}'`);
    return text;
  }

  #closed<T>(value: T): T {
    this.expect(')');
    return value;
  }

  #list<T>(one: () => T): T[] {
    const all = [one()];
    while (this.#take(',')) all.push(one());
    return all;
  }

  #next(kind: Token['kind']): Token {
    const token = this.#tokens[this.#at];
    if (token?.kind !== kind) throw refused(`'${token?.text ?? 'the end'}' instead of a ${kind}`);
    this.#at += 1;
    return token;
  }

  #take(text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token === undefined || token.kind === 'text' || token.text !== text) return false;
    this.#at += 1;
    return true;
  }
}

function textOf(value: unknown): Value {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
