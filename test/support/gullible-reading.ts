/** Something that a text asks its reader to do, in the small language of the attacks. */
export interface Order {
  verb: "call" | "say";
  words: string;
}

const ORDER = /ORDER (call|say) (.{1,4000}?) OVER/g;
const TAGS = /[\u{E0020}-\u{E007E}]/gu;
const TAG_BASE = 0xe0000;
/** Letters of other scripts that look like Latin ones. */
const LOOKALIKES: Record<string, string> = {
  а: "a",
  с: "c",
  е: "e",
  о: "o",
  р: "p",
  х: "x",
  у: "y",
  і: "i",
  ѕ: "s",
  Е: "E",
  О: "O",
  Ѕ: "S",
  Т: "T",
  Р: "P",
  А: "A",
  С: "C",
  В: "B",
  Н: "H",
  М: "M",
  К: "K",
};
const ENTITIES: Record<string, string> = { quot: '"', apos: "'", lt: "<", gt: ">", nbsp: " ", amp: "&" };

/** The same texts come back with every turn of a conversation, and reading them so closely takes long. */
const read = new Map<string, Order[]>();

/** Every order in a text, however it is hidden there: a reader that wants to be fooled. */
export function ordersIn(text: string): Order[] {
  const orders = read.get(text) ?? readClosely(text);
  read.set(text, orders);
  return orders;
}

function readClosely(text: string): Order[] {
  const found = new Map<string, Order>();
  for (const view of viewsOf(text))
    for (const [all, verb, words = ""] of flat(view).matchAll(ORDER))
      found.set(all, { verb: verb === "call" ? "call" : "say", words });
  return [...found.values()];
}

type View = (text: string) => string;

const VIEWS: View[] = [
  (text) => text,
  (text) => text.replaceAll(TAGS, (tag) => String.fromCodePoint((tag.codePointAt(0) ?? 0) - TAG_BASE)),
  (text) => text.replaceAll(/\p{Cf}/gu, ""),
  (text) => text.normalize("NFKC").replaceAll(/\p{L}/gu, (letter) => LOOKALIKES[letter] ?? letter),
  (text) => text.replaceAll(/&#x?([0-9a-f]+);|&([a-z]+);/gi, entity),
  (text) => text.replaceAll(/[A-Za-z]/g, rot13),
  (text) => text.split("").toReversed().join(""),
  (text) => text.replaceAll(/(?:%[0-9a-f]{2})+/gi, percent),
  (text) => text.replaceAll(/=\r?\n/g, "").replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => fromHex(hex)),
  (text) => decoded(text, /[A-Za-z0-9+/]{24,}={0,2}/g, "base64"),
  (text) => decoded(text, /[A-Za-z0-9+/]{24,}={0,2}/g, "base64", /\s+|^[> ]+/gm),
  (text) => decoded(text, /(?:[0-9a-f]{2}){12,}/gi, "hex"),
  (text) => text.replaceAll(/\\([,;\\"])/g, "$1"),
];

function viewsOf(text: string): Set<string> {
  return new Set(VIEWS.map((view) => view(text)));
}

/** On one line and without marks of quotation. */
function flat(text: string): string {
  return text.replaceAll(/^[>\s|*]+/gm, "").replaceAll(/\s+/g, " ");
}

function entity(all: string, code: string | undefined, name: string | undefined): string {
  if (code === undefined) return ENTITIES[name?.toLowerCase() ?? ""] ?? all;
  return String.fromCodePoint(Number.parseInt(code, all.startsWith("&#x") ? 16 : 10) % 0x11_0000);
}

function rot13(letter: string): string {
  const base = letter <= "Z" ? 65 : 97;
  return String.fromCodePoint(((letter.charCodeAt(0) - base + 13) % 26) + base);
}

function percent(escaped: string): string {
  return fromHex(escaped.replaceAll("%", ""));
}

function fromHex(hex: string): string {
  return Buffer.from(hex, "hex").toString();
}

function decoded(text: string, words: RegExp, encoding: "base64" | "hex", without?: RegExp): string {
  const joined = without === undefined ? text : text.replaceAll(without, "");
  return [...joined.matchAll(words)].map(([word]) => Buffer.from(word, encoding).toString()).join("\n");
}
