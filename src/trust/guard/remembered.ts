/** How many texts are remembered: several rules ask about each text of a call. */
const MAX_KNOWN = 8;

/** Returns a function that reads a text once, however often it is asked for it. */
export function remembered<Read>(read: (text: string) => Read): (text: string) => Read {
  const known = new Map<string, { found: Read }>();
  return (text) => {
    const one = known.get(text) ?? { found: read(text) };
    known.delete(text);
    known.set(text, one);
    for (const old of known.keys()) if (known.size > MAX_KNOWN) known.delete(old);
    return one.found;
  };
}
