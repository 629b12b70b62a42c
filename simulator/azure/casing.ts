/** Casing of the ids in answers: as made, the group's name in capitals, all small, or now one and now another. */
export type Casing = 'kept' | 'upper' | 'lower' | 'mixed';

/** Every ARM id in a JSON text, cased. `serial` picks the one of `mixed`. */
export function cased(json: string, casing: Casing, serial: number): string {
  const now = casing === 'mixed' ? (['kept', 'upper', 'lower'] as const)[serial % 3] : casing;
  if (now === 'kept' || now === undefined) return json;
  return json.replace(/"\/subscriptions\/[^"]*"/gi, (id) =>
    now === 'lower'
      ? id.toLowerCase()
      : id.replace(/(\/resourcegroups\/)([^/"]+)/i, (_, word: string, group: string) => word + group.toUpperCase()),
  );
}
