/**
 * Faults are switched on by name of the operation (as the cloud names it), for a number of requests or until cleared.
 * What a fault does to a request is the face's business (each cloud has its own error bodies); this book only says which.
 */
export type Fault =
  /** The cloud's own error, by code: `RequestLimitExceeded`, `UnauthorizedOperation`, `ScopeLocked`. */
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly code: string;
      readonly message: string;
      readonly retryAfterS?: number;
    }
  /** The connection is closed without an answer. */
  | { readonly kind: 'drop' }
  /** The answer never comes. */
  | { readonly kind: 'hang' }
  /** The answer ends in the middle of its body. */
  | { readonly kind: 'cut' }
  /** 200 with an empty body. */
  | { readonly kind: 'empty' }
  /** A well-formed page that lacks its second half and any token to it, flagged only where the cloud flags it. */
  | { readonly kind: 'partial' };

interface Rule {
  readonly operation: string;
  readonly target: RegExp | undefined;
  readonly fault: Fault;
  skip: number;
  left: number;
}

export class FaultBook {
  readonly #rules: Rule[] = [];

  /** `times` requests after the first `skip` (default: all, at once); `target` is matched against the resource id in question. */
  inject(operation: string, fault: Fault, options: { times?: number; skip?: number; target?: RegExp } = {}): void {
    const { times = Number.POSITIVE_INFINITY, skip = 0, target } = options;
    this.#rules.push({ operation, fault, target, skip, left: times });
  }

  clear(): void {
    this.#rules.length = 0;
  }

  take(operation: string, target = ''): Fault | undefined {
    for (const rule of this.#rules) {
      if (rule.operation !== operation || rule.left <= 0 || (rule.target && !rule.target.test(target))) continue;
      if (rule.skip > 0) {
        rule.skip -= 1;
        continue;
      }
      rule.left -= 1;
      return rule.fault;
    }
    return undefined;
  }
}
