import type sanitizeHtml from "sanitize-html";

import { LOOK, OUTLOOK_SHEET, PAGE_CLASS, QUIET_CLASS, SHEET } from "./look.ts";
import { escapeHtml, type LinkGuard } from "./markdown.ts";
import { sanitizer } from "./sanitizer.ts";

/** A safe CSS value: no function except for colours, so nothing is fetched, and no escape that could spell one. */
const SAFE_VALUE = /^(?:[\w\s#.,%!'-]|(?:rgb|hsl)a?\([\d\s.,%]*\))*$/i;
const STYLES =
  "color background background-color border border-collapse border-spacing border-radius border-top border-right border-bottom border-left border-color border-style border-width display font font-family font-size font-style font-weight gap height letter-spacing line-height list-style list-style-type margin margin-top margin-right margin-bottom margin-left max-width min-width opacity padding padding-top padding-right padding-bottom padding-left text-align text-decoration text-indent text-transform vertical-align white-space width word-break word-wrap overflow-x border-inline-start";

const PAGE: sanitizeHtml.IOptions = {
  allowedTags:
    "h1 h2 h3 h4 h5 h6 p br hr blockquote pre code kbd samp var ul ol li dl dt dd em i strong b u s del ins small sub sup mark abbr cite q time a img figure figcaption table caption colgroup col thead tbody tfoot tr th td div span section article header footer main aside nav address details summary".split(
      " ",
    ),
  allowedAttributes: {
    "*": ["style", "align", "valign", "dir", "lang"],
    a: ["href"],
    img: ["src", "alt", "width", "height"],
    ol: ["start", "type"],
    th: ["colspan", "rowspan", "scope", "width"],
    td: ["colspan", "rowspan", "width"],
    col: ["span", "width"],
    table: ["width", "border", "cellpadding", "cellspacing"],
  },
  allowedStyles: { "*": Object.fromEntries(STYLES.split(" ").map((name) => [name, [SAFE_VALUE]])) },
  allowedSchemes: ["http", "https", "mailto"],
  // Only pictures within the page: any other would tell its host that the page was opened.
  allowedSchemesByTag: { img: ["data"] },
  allowProtocolRelative: false,
  nonTextTags: ["script", "style", "textarea", "option", "noscript", "head", "title", "template"],
  exclusiveFilter: ({ tag, attribs }) => tag === "img" && !/^data:image\//i.test(attribs["src"] ?? ""),
};

/** Returns a page, or part of one, without anything that runs or fetches when it is opened. */
export function harmlessPage(html: string, guard: LinkGuard): string {
  return page(
    ofFile(titleOf(html)),
    sanitizer()(html, { ...PAGE, transformTags: { a: withoutStranger(guard) } }),
  );
}

/** Removes the URL of a refused link; its text stays. */
function withoutStranger(guard: LinkGuard): sanitizeHtml.Transformer {
  return (tagName, attribs) => ({ tagName, attribs: guard.keeps(attribs["href"] ?? "") ? attribs : {} });
}

/** Returns a complete HTML file around HTML that we wrote ourselves. */
export function filePage(html: string): string {
  return page([...ofFile(""), ...LOOKS], inLook(html));
}

/** Returns the HTML part of a mail; `notes` may be empty, and `footer` is plain text. */
export function mailPage({
  answer,
  notes,
  footer,
}: {
  answer: string;
  notes: string;
  footer: string;
}): string {
  return page([VIEWPORT, ...LOOKS], inLook(answer + below(notes.trim(), escapeHtml(footer))));
}

function below(notes: string, footer: string): string {
  if (notes === "") return footer === "" ? "" : soft("footer", footer);
  return soft(
    "notes",
    footer === "" ? notes : `${notes}\n<div style="${LOOK.footer_of_notes}">${footer}</div>`,
  );
}

function soft(look: "notes" | "footer", html: string): string {
  return `<div class="${QUIET_CLASS}" style="${LOOK[look]}">${html}</div>\n`;
}

const VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">';
const LOOKS = [
  '<meta name="color-scheme" content="light dark">',
  '<meta name="supported-color-schemes" content="light dark">',
  `<style>\n${SHEET}\n</style>`,
  `<!--[if mso]><style>${OUTLOOK_SHEET}</style><![endif]-->`,
];

function ofFile(title: string): string[] {
  return [
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">`,
    VIEWPORT,
    `<title>${escapeHtml(title)}</title>`,
  ];
}

function inLook(html: string): string {
  return `<div class="${PAGE_CLASS}" dir="auto" style="${LOOK.page}">\n${html.trim()}\n</div>`;
}

/** Returns a complete page around a body. */
function page(head: string[], body: string): string {
  return `<!doctype html>
<html>
<head>
<meta charset="utf-8">
${head.join("\n")}
</head>
<body>
${body.trim()}
</body>
</html>
`;
}

const MAX_TITLE_CHARS = 200;

function titleOf(html: string): string {
  const title =
    /<title[^<>]{0,200}>([^<>]{1,1000})</i.exec(html)?.[1] ??
    /<h1[^<>]{0,200}>([^<>]{1,1000})</i.exec(html)?.[1];
  return (title ?? "")
    .replaceAll(/&[#\w]{1,20};/g, " ")
    .trim()
    .slice(0, MAX_TITLE_CHARS)
    .toWellFormed();
}
