import MarkdownIt from "markdown-it";
import { createElement, Fragment, type ReactNode } from "react";
import { classes } from "./class-names.ts";

const parser = new MarkdownIt({ html: false, linkify: false });
type Token = ReturnType<typeof parser.parse>[number];

/** Boxes at the beginning of an entry of a list, as GitHub writes tasks. */
parser.core.ruler.push("tasks", ({ tokens }) => {
  for (const [at, { type, children }] of tokens.entries()) {
    const text = children?.[0];
    if (type !== "inline" || text?.type !== "text" || tokens[at - 2]?.type !== "list_item_open") continue;
    text.content = text.content.replace(/^\[ \] /, "☐ ").replace(/^\[[xX]\] /, "☑ ");
  }
});

const LOOKS: Record<string, string> = {
  h1: "text-xl font-semibold",
  h2: "text-lg font-semibold",
  h3: "font-semibold",
  ul: "list-disc pl-6",
  ol: "list-decimal pl-6",
  blockquote: "border-l-2 border-line pl-3 text-soft",
  pre: "overflow-x-auto rounded-md bg-back p-3",
  table:
    "border-collapse [&_td]:border [&_td]:border-line [&_td]:px-2 [&_th]:border [&_th]:border-line [&_th]:px-2",
};
/** How the cells of a table are set, by the style that the parser gives them. */
const ALIGNMENTS: Record<string, string> = {
  "text-align:right": "text-right",
  "text-align:center": "text-center",
};
const TAGS = new Set(
  "h1 h2 h3 h4 h5 h6 p ul ol li blockquote em strong s table thead tbody tr th td".split(" "),
);

/** Markdown as elements of the page. Links show where they would lead and lead nowhere, and pictures are not loaded. */
export function Markdown({ text }: { text: string }) {
  return <div className="grid gap-3 wrap-anywhere">{render(parser.parse(text, {}))}</div>;
}

/** Tokens come flat, with an opening and a closing one around what they hold. */
function render(tokens: Token[]): ReactNode[] {
  const out: ReactNode[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (!token) break;
    if (token.nesting === 1) {
      const end = closingOf(tokens, at);
      out.push(element(token, render(tokens.slice(at + 1, end)), out.length));
      at = end;
    } else out.push(<Fragment key={out.length}>{leaf(token)}</Fragment>);
  }
  return out;
}

function closingOf(tokens: Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    depth += tokens[at]?.nesting ?? 0;
    if (depth === 0) return at;
  }
  return tokens.length;
}

function element(token: Token, children: ReactNode[], key: number): ReactNode {
  if (token.type === "link_open")
    return (
      <Fragment key={key}>
        {children} <span className="text-soft">({token.attrGet("href")})</span>
      </Fragment>
    );
  return createElement(
    TAGS.has(token.tag) ? token.tag : "div",
    { key, className: classes(LOOKS[token.tag], ALIGNMENTS[token.attrGet("style") ?? ""]) },
    children,
  );
}

function leaf(token: Token): ReactNode {
  switch (token.type) {
    case "inline":
      return render(token.children ?? []);
    case "softbreak":
      return " ";
    case "hardbreak":
      return <br />;
    case "hr":
      return <hr className="border-line" />;
    case "code_inline":
      return <code className="rounded bg-back px-1 font-mono text-[0.9em]">{token.content}</code>;
    case "fence":
    case "code_block":
      return <pre className={LOOKS["pre"]}>{token.content}</pre>;
    case "image":
      return <span className="text-soft">[picture: {token.content}]</span>;
    default:
      return token.content;
  }
}
