/** A key of a table has at most 1 KiB of UTF-16. */
const MAX_LENGTH = 512;

/**
 * Characters that a table's key or its address cannot hold, each with its neighbour in the order: both are written as the
 * neighbour and a digit, so that written keys sort and start as the keys themselves do.
 */
const GROUPS = ['#$', "%&'", '+,', './', '?@', '\\]'] as const;
const PREFIXES = ['$', '&', ',', '.', '@', ']'] as const;

const written = new Map<string, string>();
for (let code = 0; code <= 0x21; code += 1) written.set(String.fromCharCode(code), `!${hex(code)}`);
for (let code = 0x7e; code <= 0xa0; code += 1) written.set(String.fromCharCode(code), `~${hex(code)}`);
GROUPS.forEach((group, index) => {
  group.split('').forEach((char, place) => {
    written.set(char, `${PREFIXES[index]}${place}`);
  });
});
const read = new Map([...written].map(([char, text]) => [text, char]));

function hex(code: number): string {
  return code.toString(16).padStart(2, '0');
}

/** A ledger's key as a table's: reversible, and neither the order nor a common beginning is lost. @throws Error over 512 characters */
export function encodeKey(key: string): string {
  const text = Array.from(key, (char) => written.get(char) ?? char).join('');
  if (text.length > MAX_LENGTH)
    throw new Error(`a key of the ledger is too long for a table: ${text.length} characters`);
  return text;
}

export function decodeKey(text: string): string {
  return text.replace(/[!~][0-9a-f]{2}|[$&,.@\]][0-2]/g, (one) => read.get(one) ?? one);
}

/** The first text after all that start with `prefix`. */
export function afterPrefix(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
