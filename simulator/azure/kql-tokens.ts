import { ArmError } from './errors.ts';

export interface Token {
  readonly kind: 'word' | 'text' | 'number' | 'sign' | 'end';
  /** Of a text its value, without quotes and escapes. */
  readonly text: string;
  readonly at: number;
}

/** `in~` and `!has` are one token each. */
const TOKEN =
  /\s*(?:(!?in~|!?[A-Za-z_]\w*)|('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|(\d+)|(=~|!~|==|!=|[|(),.[\]=]))/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** A query's tokens, read from left to right. Every refusal names the place and the token, as Resource Graph's do. */
export class Tokens {
  readonly #query: string;
  readonly #tokens: Token[] = [];
  #at = 0;

  /** @throws ArmError on a character that begins no token */
  constructor(query: string) {
    this.#query = query;
    let at = 0;
    while (query.slice(at).trim() !== '') {
      TOKEN.lastIndex = at;
      const match = TOKEN.exec(query);
      const start = at + (/^\s*/.exec(query.slice(at))?.[0].length ?? 0);
      if (!match) throw this.refusal('no token begins so', { kind: 'sign', text: query[start] ?? '', at: start });
      this.#tokens.push(tokenOf(match, start));
      at = TOKEN.lastIndex;
    }
  }

  get peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '<EOF>', at: this.#query.length };
  }

  /** The token after the next one. */
  get second(): Token | undefined {
    return this.#tokens[this.#at + 1];
  }

  /** Takes a word or sign if it comes next. */
  take(text: string): boolean {
    const { kind, text: next } = this.peek;
    if ((kind !== 'word' && kind !== 'sign') || next !== text) return false;
    this.#at += 1;
    return true;
  }

  /** @throws ArmError */
  expect(text: string): void {
    if (!this.take(text)) throw this.refusal(`expected '${text}'`);
  }

  /** @throws ArmError */
  next(kind: Token['kind'], what: string): string {
    const token = this.peek;
    if (token.kind !== kind) throw this.refusal(`expected ${what}`);
    this.#at += 1;
    return token.text;
  }

  /** What stands between commas, at least one. */
  list<T>(one: () => T): T[] {
    const all = [one()];
    while (this.take(',')) all.push(one());
    return all;
  }

  /** What stands in parentheses. */
  closed<T>(one: () => T): T {
    this.expect('(');
    const value = one();
    this.expect(')');
    return value;
  }

  refusal(why: string, { text, at }: Token = this.peek): ArmError {
    const lines = this.#query.slice(0, at).split('\n');
    const place = { line: lines.length, characterPositionInLine: lines.at(-1)?.length ?? 0, token: text };
    return invalidQuery(`ParserFailure: ${why} at '${text}'`, place);
  }
}

function tokenOf([, word, literal, number, sign]: RegExpExecArray, at: number): Token {
  if (word !== undefined) return { kind: 'word', text: word, at };
  if (literal !== undefined) {
    const text = literal.slice(1, -1).replace(/\\(.)/g, (_, one: string) => ESCAPES[one] ?? one);
    return { kind: 'text', text, at };
  }
  if (number !== undefined) return { kind: 'number', text: number, at };
  return { kind: 'sign', text: sign ?? '', at };
}

interface Place {
  readonly line: number;
  readonly characterPositionInLine: number;
  readonly token: string;
}

/** Resource Graph's outer texts say nothing; what is wrong stands in the last detail. */
function invalidQuery(message: string, place: Place): ArmError {
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
        { code: 'ParserFailure', message, ...place },
      ],
    },
  );
}
