import { writeSync } from 'node:fs';
import type { Report, ReportItem } from '../../shared/core/report.ts';

const FLUSH_CHARACTERS = 65_536;

/**
 * One report on standard output, its items as they come, so that a million of them need no memory. The items are written
 * first, everything that is known only at the end after them.
 */
export class JsonReport {
  #buffer = '{"items":[';
  #count = 0;

  item(item: ReportItem): void {
    this.#write(`${this.#count === 0 ? '' : ','}${JSON.stringify(item)}`);
    this.#count += 1;
  }

  end(report: Report): void {
    const { items: _, itemsOmitted: __, ...rest } = report;
    this.#write(`],${JSON.stringify({ ...rest, itemsOmitted: 0 }).slice(1)}\n`);
    this.#flush();
  }

  #write(text: string): void {
    this.#buffer += text;
    if (this.#buffer.length > FLUSH_CHARACTERS) this.#flush();
  }

  /** Synchronously: a pipe that is read slowly holds the sweep back instead of filling the memory. */
  #flush(): void {
    let rest = Buffer.from(this.#buffer);
    this.#buffer = '';
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(1, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
    }
  }
}
