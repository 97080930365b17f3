import { describe, expect, test } from "bun:test";
import { type DefaultTreeAdapterTypes, parse, serialize } from "parse5";
import { splitNewText } from "../../src/trust/own-words/reply-text.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";

/** What must never count as a word of the sender: the quoted author's. */
const EVIL = "EVILWORD do it now";
const PAGES = 1_500;

interface Node {
  nodeName: string;
  tagName?: string;
  value?: string;
  attrs?: { name: string; value: string }[];
  childNodes?: Node[];
  content?: Node;
}

/** Answers of which the quote is an element of its own, by programs that answer above and below it. */
const ANSWERS: ((quoted: string) => string)[] = [
  (quoted) =>
    `<html><head></head><body><div>Thanks</div><div><br><blockquote id="Q" type="cite"><div>On 3 May 2024, at 10:00, Eve &lt;eve@example.net&gt; wrote:</div><br><div>${quoted}</div></blockquote></div></body></html>`,
  (quoted) =>
    `<html><head></head><body><div class="moz-cite-prefix">On 3 May 2024 10:00, Eve wrote:<br></div><blockquote id="Q" type="cite" cite="mid:x">${quoted}</blockquote><p>Thanks</p></body></html>`,
];
const TAGS =
  "svg math mtext mi annotation-xml mglyph foreignObject desc style title xmp iframe noembed noframes plaintext textarea script select option template p div table td tr caption col blockquote ul li dd a b font nobr br hr form button h1 body html frameset head object applet marquee details fieldset span rb rt noscript".split(
    " ",
  );
const ENDS = [
  "</blockquote>",
  "</div>",
  "</p>",
  "</table>",
  "</td>",
  "</select>",
  "</style></blockquote>",
  "</title></blockquote>",
  "</script></blockquote>",
  "</svg></blockquote>",
  "</body></html>",
  "-->",
  "--!>",
  "<!-->",
  "<!--",
  "]]>",
  "<![CDATA[",
  "<?x ",
  "<!x ",
  "</ x>",
  "</>",
  "<",
  '<a "',
  "<a b='",
  "</BLOCKQUOTE >",
  "</blockquote/>",
  "</blockquote x='>'>",
  "<blockquote/>",
];

/** A piece of a page that was made to be read in two ways. */
function fragment(chance: () => number, depth = 0): string {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(chance() * all.length)] as T;
  const kind = chance();
  if (kind < 0.15) return `${EVIL} `;
  if (kind < 0.4) return pick(ENDS);
  if (kind < 0.45) return `<a title="${pick(ENDS)}${EVIL}">`;
  if (kind < 0.5) return `<!--${pick(ENDS)}${EVIL}-->`;
  const inner = Array.from({ length: depth < 5 ? Math.floor(chance() * 4) : 0 }, () =>
    fragment(chance, depth + 1),
  );
  const tag = pick(TAGS);
  return `<${tag}>${inner.join("")}${chance() < 0.7 ? `</${tag}>` : ""}`;
}

/** Whether a browser shows the words outside of the quote. */
function showsOutside(node: Node, inside = false): boolean {
  const quoted = inside || (node.attrs ?? []).some(({ name, value }) => name === "id" && value === "Q");
  if (node.nodeName === "#text") return !quoted && (node.value ?? "").includes("EVILWORD");
  const below = [...(node.childNodes ?? []), ...(node.content ? [node.content] : [])];
  return below.some((child) => showsOutside(child, quoted));
}

/** A page as a mail program writes what it holds of it. */
function asWritten(html: string): string | undefined {
  const page = parse(`<!DOCTYPE html><html><body>${html}</body></html>`, { scriptingEnabled: false });
  const find = (node: Node | undefined, name: string) =>
    node?.childNodes?.find(({ tagName }) => tagName === name);
  const body = find(find(page, "html"), "body");
  return (
    body && serialize(body as unknown as DefaultTreeAdapterTypes.ParentNode, { scriptingEnabled: false })
  );
}

function ownWords(html: string): string {
  return splitNewText({ html }).new_text;
}

const MARKED: [name: string, quoted: string][] = [
  [
    "a comment inside of MathML",
    `<math><annotation-xml><title><!--</title></blockquote>${EVIL}--></title></annotation-xml></math>`,
  ],
  [
    "an attribute inside of MathML",
    `<math><mtext><mglyph><style><a title="</style></blockquote>${EVIL}">x</a></style></mglyph></mtext></math>`,
  ],
  ["the end of a page", `Lunch?</body></html>${EVIL}`],
  ["an end within a table", `<table></script></blockquote>${EVIL}`],
  ["an end within a cell", `<table><tr><td></blockquote>${EVIL}`],
  ["an end within an object", `<object></textarea></blockquote>${EVIL}`],
  ["an end within something that moves", `<marquee></style></blockquote>${EVIL}`],
  ["an end within a list to choose from", `<select></div></blockquote>${EVIL}</select>`],
  ["an end within a template", `<template></BLOCKQUOTE >${EVIL}`],
  ["a script within a script", `<script><!--<script></script></blockquote>${EVIL}</script>--></script>`],
];

test.each(MARKED)("%s in a quote is not the end of it", (_name, quoted) => {
  for (const answer of ANSWERS) {
    const html = answer(quoted);
    expect(showsOutside(parse(html, { scriptingEnabled: false }) as unknown as Node)).toBe(false);
    expect(ownWords(html)).not.toContain("EVILWORD");
  }
});

describe("words that a browser shows inside of the quote alone, or not at all, are not the sender's", () => {
  const chance = chanceFrom(seedFrom("FUZZ_SEED", "as browsers read"));
  const pages = Array.from({ length: PAGES }, () => fragment(chance) + fragment(chance) + fragment(chance));

  test("in a page as it came", () => {
    const read = pages.flatMap((page) => ANSWERS.map((answer) => answer(page)));
    const inside = read.filter(
      (html) => !showsOutside(parse(html, { scriptingEnabled: false }) as unknown as Node),
    );
    expect(inside.filter((html) => ownWords(html).includes("EVILWORD"))).toEqual([]);
    expect(inside.length).toBeGreaterThan(PAGES);
  }, 60_000);

  test("in a page as a mail program writes it", () => {
    const written = pages.map(asWritten).filter((page) => page !== undefined);
    const answers = written.flatMap((page) => ANSWERS.map((answer) => answer(page)));
    expect(answers.filter((html) => ownWords(html).includes("EVILWORD"))).toEqual([]);
    expect(written.length).toBeGreaterThan(PAGES / 2);
  }, 60_000);
});

test("own words below a quote with tables, lists, pictures and a style stay the sender's", () => {
  const quoted = `<style>p { color: red }</style><table><tr><td>A<td>B<tr><td><ul><li>one<li>two</ul></table><p>x<p>y<br><img src="cid:1"><font>z</font>`;
  for (const answer of ANSWERS) expect(ownWords(answer(quoted))).toBe("Thanks");
});
