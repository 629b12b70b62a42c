import Table from 'cli-table3';
import { paint } from './style.ts';

/** A table on a terminal; plain columns where nobody looks at one, so that they can be cut and searched. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const made = new Table({
    head: head.map((one) => paint('bold', one)),
    style: { head: [], border: [], compact: true },
    ...(!process.stdout.isTTY && { chars: PLAIN }),
  });
  made.push(...rows.map((row) => [...row]));
  return made.toString();
}

const PLAIN = Object.fromEntries(
  [
    ...['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
      side,
      `${side}-mid`,
      `${side}-left`,
      `${side}-right`,
    ]),
    'mid-mid',
    'middle',
  ].map((part) => [part, part === 'middle' ? ' ' : '']),
);

/** Azure's ids are as long as a line: on a terminal the last part says enough beside the name. */
export function shortId(id: string): string {
  return id.includes('/') && process.stdout.isTTY ? `…/${id.split('/').slice(-2).join('/')}` : id;
}
