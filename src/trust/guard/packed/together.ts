/** A text of a call, or several as a program may put them together that mails them. */
export interface Together {
  /** The name of the nearest enclosing member; "" for texts of several members. */
  key: string;
  text: string;
}

const MAX_DEPTH = 40;
/** What is deeper is put together with the rest of its list: to do so at each depth would take the square of it. */
const MAX_JOINED_DEPTH = 6;
/** A name of fewer letters, and without blanks, says nothing that anybody would do. */
const MIN_NAME_LETTERS = 12;

/**
 * Returns what the texts of each list and of each object become one behind the other: a list of lines, runs of rich text
 * (`[{ text: "@off" }, { text: "ice" }]`), fields that a template puts in a row. A name stands with its value where it
 * may be words, as in a form: `{ "Move it all": "Thank you" }`.
 */
export function togetherIn(args: unknown): Together[] {
  const found: Together[] = [];
  gather(args, { key: "", depth: 0 }, (one) => found.push(one));
  return found;
}

/**
 * Returns the texts in rows, in each of which a program may put one behind the other: all of them, and those below each
 * name, as runs of rich text have members of other names between them.
 */
export function rowsIn(args: unknown): string[][] {
  const leaves = gather(args, { key: "", depth: 0 }, () => undefined);
  const below = [...Map.groupBy(leaves, ({ key }) => key).values()];
  return [leaves, ...(below.length > 1 ? below : [])]
    .filter(({ length }) => length > 1)
    .map((row) => row.map(({ text }) => text));
}

/** Returns the texts in the members of each object, which a template may put one behind the other in a sequence of its own. */
export function fieldsIn(args: unknown, depth = 0): string[][] {
  if (typeof args !== "object" || args === null || depth > MAX_DEPTH) return [];
  const inner = Object.values(args);
  const texts = Array.isArray(args) ? [] : inner.filter((value) => typeof value === "string");
  return [...(texts.length > 1 ? [texts] : []), ...inner.flatMap((value) => fieldsIn(value, depth + 1))];
}

function gather(
  value: unknown,
  { key, depth }: { key: string; depth: number },
  add: (one: Together) => void,
): Together[] {
  if (typeof value === "string" || typeof value === "number") return [{ key, text: String(value) }];
  // What is deeper is refused by whoever looks at each text by itself.
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return [];
  const inner = Array.isArray(value)
    ? value.map((item) => gather(item, { key, depth: depth + 1 }, add))
    : Object.entries(value).map(([name, item]) => {
        const leaves = gather(item, { key: name, depth: depth + 1 }, add);
        for (const line of linesOf(name, leaves)) add({ key: "", text: line });
        return leaves;
      });
  const leaves = inner.flat();
  const parts = inner.filter((one) => one.length > 0);
  if (parts.length < 2 || depth > MAX_JOINED_DEPTH) return leaves;
  const byKey = Map.groupBy(leaves, (leaf) => leaf.key);
  for (const [name, same] of byKey) addTogether(name, same, add);
  if (byKey.size > 1) addTogether("", leaves, add);
  return leaves;
}

function addTogether(key: string, leaves: Together[], add: (one: Together) => void): void {
  if (leaves.length < 2) return;
  const texts = leaves.map(({ text }) => text);
  for (const between of ["", " "]) add({ key, text: texts.join(between) });
}

/** A name that may be words, with each of its values. */
function linesOf(name: string, leaves: Together[]): string[] {
  if (!/\s/.test(name) && name.length < MIN_NAME_LETTERS) return [];
  return [name, ...leaves.map(({ text }) => `${name}: ${text}`)];
}
