import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Colours only where the stream is a terminal that has them; NO_COLOR and FORCE_COLOR are honoured. */
export function paint(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(style, text, { stream, validateStream: true });
}

export const OUTCOME_STYLE: Readonly<Record<string, Style>> = {
  deleted: 'green',
  'would-delete': 'yellow',
  failed: 'red',
  deferred: 'cyan',
  none: 'dim',
};
