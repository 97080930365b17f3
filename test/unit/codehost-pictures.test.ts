import { describe, expect, test } from "bun:test";
import { Parser } from "htmlparser2";
import MarkdownIt from "markdown-it";
import { withoutPictures } from "../../src/resources/integrations/codehost-pictures.ts";

const EVES = "https://eve.example.net/loot";
const markdown = new MarkdownIt({ html: true });

/** What a page fetches by itself, or draws with a program that does. */
const FETCHING =
  /^(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|applet|svg|use|feimage|link|style|script|input|meta|base|body|math|mglyph|bgsound|portal|model|g-emoji|gl-emoji)$/;
const DRAWN =
  /^(?:mermaid|plantuml|c4plantuml|graphviz|dot|kroki|d2|vega|vegalite|structurizr|excalidraw|bpmn|ditaa|svgbob|nomnoml|tikz|geojson|topojson|stl|json:table)$/;
/** As Gitea and Forgejo find short links in the texts of a page, and make pictures of them. */
const SHORT_PICTURE = /\[\[.*\/\/.*\]\]/;

/** What is fetched when a code host shows a text: as Markdown with HTML in it, the drawings and the short links of all hosts. */
function fetchedBy(text: string): string[] {
  const found: string[] = [];
  let pre = false;
  let words = "";
  const endWords = () => {
    if (!pre && SHORT_PICTURE.test(words)) found.push("short link");
    words = "";
  };
  const parser = new Parser({
    onopentag: (name, attributes) => {
      endWords();
      if (FETCHING.test(name)) found.push(name);
      pre ||= name === "pre";
      const language = attributes["lang"] ?? attributes["class"]?.replace(/^(?:chroma )?language-/, "") ?? "";
      if (/^(?:pre|code)$/.test(name) && DRAWN.test(language.toLowerCase())) found.push(language);
    },
    onclosetag: (name) => {
      endWords();
      pre &&= name !== "pre";
    },
    ontext: (piece) => {
      words += piece;
    },
  });
  parser.end(markdown.render(text));
  endWords();
  return found;
}

const FORMS: [what: string, text: string][] = [
  ["a picture", `![a](${EVES})`],
  ["a picture with a title", `![a](<${EVES}> "t")`],
  ["a picture with attributes behind it", `![a](${EVES}){width=1 height=1}`],
  ["a picture that is a film", `![a](${EVES}.mp4)`],
  ["a picture by reference", `![a][r]\n\n[r]: ${EVES}`],
  ["a picture by its own name", `![r]\n\n[r]: ${EVES}`],
  ["a picture by an empty reference", `![r][]\n\n[r]: ${EVES}`],
  ["a picture in a link", `[![a](${EVES})](https://example.com/)`],
  ["a picture in a table", `| a |\n|---|\n| ![a](${EVES}) |`],
  ["a picture behind another mark", `!![a](${EVES})`],
  ["a picture behind a backslash of its own", `\\\\![a](${EVES})`],
  ["img", `<img src="${EVES}">`],
  ["img without a space", `<div><img/src=${EVES}></div>`],
  ["img in capitals", `<IMG SRC=${EVES}>`],
  ["img over lines", `<img\nsrc="${EVES}">`],
  ["img in a block of HTML", `<div>\n<img src="${EVES}">\n</div>`],
  ["picture", `<picture><source srcset="${EVES}"></picture>`],
  ["video", `<video poster="${EVES}"></video>`],
  ["audio", `<audio src="${EVES}"></audio>`],
  ["track", `<track src="${EVES}">`],
  ["iframe", `<iframe src="${EVES}"></iframe>`],
  ["frame", `<frame src="${EVES}">`],
  ["object", `<object data="${EVES}"></object>`],
  ["embed", `<embed src="${EVES}">`],
  ["applet", `<applet code="${EVES}"></applet>`],
  ["svg", `<svg><image href="${EVES}"/></svg>`],
  ["MathML", `<math><mglyph src="${EVES}"/></math>`],
  ["link", `<link rel=stylesheet href="${EVES}">`],
  ["style", `<style>@import "${EVES}";</style>`],
  ["script", `<script src="${EVES}"></script>`],
  ["input", `<input type=image src="${EVES}">`],
  ["meta", `<meta http-equiv=refresh content="0;url=${EVES}">`],
  ["base", `<base href="${EVES}">`],
  ["body", `<body background="${EVES}">`],
  ["a host's own mark for an emoji", `<g-emoji fallback-src="${EVES}">x</g-emoji>`],
  ["another host's mark for an emoji", `<gl-emoji data-fallback-src="${EVES}">x</gl-emoji>`],
  ["a drawing", `\`\`\`mermaid\nA@{ img: "${EVES}" }\n\`\`\``],
  ["a drawing with spaces", `\`\`\` \t mermaid\nA\n\`\`\``],
  ["a drawing in capitals", "```MERMAID\nA\n```"],
  ["a drawing with settings", "```mermaid {x}\nA\n```"],
  ["a drawing in tildes", "~~~mermaid\nA\n~~~"],
  ["a drawing in many backticks", "``````mermaid\nA\n``````"],
  ["a drawing in a quote", "> ```mermaid\n> A\n> ```"],
  ["a drawing in a list", "- ```mermaid\n  A\n  ```"],
  ["a drawing in a numbered list", "12) ```mermaid\n    A\n    ```"],
  ["a drawing in a list in a quote", "> * ```mermaid\n>   A\n>   ```"],
  ["a drawing with an entity", "```&#109;ermaid\nA\n```"],
  ["a drawing with an entity by letters", "```&#x6D;ermaid\nA\n```"],
  ["a drawing with an entity at its end", "~~~mermai&#100;\nA\n~~~"],
  ["a drawing with an escape", "```json\\:table\n{}\n```"],
  ["a table of JSON, whose cells are Markdown", '```json:table\n{"markdown":true}\n```'],
  ["a map", '```geojson\n{"type":"Point"}\n```'],
  ["a body", "```stl\nsolid\n```"],
  ...["plantuml", "c4plantuml", "graphviz", "dot", "d2", "vega", "vegalite", "structurizr", "excalidraw"].map(
    (language): [string, string] => [`a drawing in ${language}`, `\`\`\`${language}\nA\n\`\`\``],
  ),
  ["a drawing in HTML", '<pre lang="mermaid"><code>A</code></pre>'],
  ["a drawing in HTML, by the class of its code", '<pre><code class="language-mermaid">A</code></pre>'],
  ["a drawing in HTML over lines", '<pre\nlang="&#109;ermaid">A</pre>'],
  ["a short link", `[[${EVES}.png]]`],
  ["a short link with a name", `[[Eve|${EVES}.png]]`],
  ["a short link with attributes", `see [[Eve|alt=x|${EVES}.svg]] there`],
  ["a short link that leaves the protocol out", "[[//eve.example.net/a.png]]"],
  ["a short link with an escape", `[\\[${EVES}.png]]`],
  ["a short link with two escapes", `\\[\\[${EVES}.png\\]\\]`],
  ["a short link with an entity", `&#91;[${EVES}.png]]`],
  ["a short link with an entity by letters", `[&#x5B;${EVES}.png]]`],
  ["a short link with a named entity", `&lbrack;&lsqb;${EVES}.png]]`],
  ["a short link with an entity that is not closed", `<div>\n&#0091[${EVES}.png]]\n</div>`],
  ["a short link whose address has escapes", "[[https:\\/\\/eve.example.net\\/a.png]]"],
  ["a short link whose address has entities", "[[https&colon;&#47;&sol;eve.example.net/a.png]]"],
  ["a short link in more brackets", `[[[${EVES}.png]]]`],
  ["a short link behind a mark of a picture", `![[${EVES}.png]]`],
];

describe("what makes a code host or its reader's browser fetch something is told by a text as words:", () => {
  test.each(FORMS)("%s", (_what, text) => {
    expect(fetchedBy(text)).not.toEqual([]);
    const harmless = withoutPictures(text);
    expect(fetchedBy(harmless)).toEqual([]);
    // Twice is no worse: what was told once may be told again.
    expect(fetchedBy(withoutPictures(harmless))).toEqual([]);
  });
});

const STAYS = [
  "A List<String>, a <b>word</b>, 1 < 2 and [a link](https://example.com/a.png) stay.",
  "Bare https://example.com/a.png and <https://example.com/>",
  "[a][r] and [b]\n\n[r]: https://example.com/",
  "[x] done, [ ] to do, [^1]\n\n[^1]: A note.",
  "```\nplain\n```",
  "```js\nconst a = [[1, 2], [3]];\n```",
  "~~~python title=x\nprint()\n~~~",
  "> ```c++\n> x\n> ```",
  "````markdown\n```\nx\n```\n````",
  "```suggestion:-0+1\nx\n```",
  "Use ```npm run mermaid``` for it, or ``a `b` c``.",
  "```mermaid``` is a word here",
  "```sh\nif [[ -f $a && $b == *.txt ]]; then :; fi\n```",
  "[[Page]] and [[Page|Words]]",
  "<details><summary>More</summary>\n\n<pre><code>x</code></pre>\n\n</details>",
  "$$\n\\frac{1}{2}\n$$",
];

test.each(STAYS)("what fetches nothing stays as it is: %p", (text) => {
  expect(fetchedBy(text)).toEqual([]);
  expect(withoutPictures(text)).toBe(text);
});
