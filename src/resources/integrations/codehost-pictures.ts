/** The beginning of a tag that loads something when somebody looks at the page, or whose content may. */
const LOADING_TAG =
  /<(?=\/?(?:img|image|picture|source|video|audio|track|iframe|frame|frameset|object|embed|applet|svg|use|feimage|link|style|script|input|meta|base|body|math|mglyph|bgsound|layer|portal|fencedframe|model|g-emoji|gl-emoji)\b)/gi;

/** The beginning of a tag for code with attributes, such as a language or a class. */
const MARKED_CODE = /<(?=(?:pre|code)[\s/]+[^\s>])/gi;

/** A fence at a place where it can begin a block of code, also within quotes, lists and notes. */
const FENCE = /^(?:[ \t>*+\-:.)\d]|\[\^[^\]]*\]:)*(?:`{3,}|~{3,})/;
/** Ends of lines, in a group so that `split` keeps them. */
const LINE_ENDS = /(\r\n|[\r\n])/;

/**
 * Languages whose code is shown as text: a code host may draw others, with pictures from any address that the text
 * names.
 */
const SHOWN = new Set(
  `text txt plain plaintext console terminal shell shellsession sh bash zsh fish powershell ps1 bat cmd diff patch log
  json json5 jsonc jsonl yaml yml toml ini conf cfg properties dotenv env xml html xhtml css scss sass less
  js jsx javascript mjs cjs ts tsx typescript vue svelte astro py python pycon rb ruby erb go golang rs rust
  c h cpp c++ cc hpp cs csharp c# java kt kotlin scala groovy gradle swift objc objective-c dart php perl pl lua r
  julia jl matlab haskell hs elixir ex erlang erl clojure clj lisp scheme elm ocaml fsharp f# zig nim crystal solidity
  asm nasm wasm sql plsql graphql gql proto protobuf http nginx apache dockerfile docker makefile make cmake hcl
  terraform tf nix vim csv tsv md markdown rst tex latex math regex suggestion`.split(/\s+/),
);
/** A suggestion of GitLab, with the lines that it is about. */
const SUGGESTION = /^suggestion:-\d+\+\d+$/;

/** A bracket as Markdown or HTML may write it; two of them side by side begin a picture at Gitea and Forgejo. */
const BRACKET = String.raw`(?:\\?\[|&#0*91;?|&#x0*5b;?|&lsqb;|&lbrack;)`;
const TWO_BRACKETS = new RegExp(`(${BRACKET})(?=${BRACKET})`, "gi");
/** A backslash that Markdown drops before a character of an address. */
const ESCAPE = /\\(?=[:/.])/g;
/** A part of an address, or an entity that may stand for one. */
const ADDRESS = /\/\/|&(?:#\w+|\w+;)|\.(?:jpe?g|png|tiff?|webp|gif|bmp|ico|svg|avif|apng)\b/i;

/**
 * Changes a text that a code host shows as Markdown so that no picture in it is fetched: whoever looks at the issue,
 * or the code host itself, would send whatever the query of its address holds.
 */
export function withoutPictures(text: string): string {
  const plain = text.replaceAll("![", "!\\[").replaceAll(LOADING_TAG, "&lt;").replaceAll(MARKED_CODE, "&lt;");
  const shown = plain.split(LINE_ENDS).map(withShownCode).join("");
  return shown.split("\n").map(withoutShortPicture).join("\n");
}

/** A line whose block of code, if it begins one, is shown as text. */
function withShownCode(line: string): string {
  const opening = FENCE.exec(line)?.[0] ?? "";
  const info = line.slice(opening.length).trim();
  // Backticks with more of them on the line are code within the line.
  const is_code = opening !== "" && info !== "" && !(opening.endsWith("`") && info.includes("`"));
  const language = info.split(/\s/, 1)[0]?.toLowerCase() ?? "";
  if (!is_code || SHOWN.has(language) || SUGGESTION.test(language)) return line;
  return `${opening}text ${info}`;
}

/**
 * A line without `[[address]]`. Gitea and Forgejo look for it in the words as they are shown, so that no escape
 * helps.
 */
function withoutShortPicture(line: string): string {
  return ADDRESS.test(line.replaceAll(ESCAPE, "")) ? line.replaceAll(TWO_BRACKETS, "$1 ") : line;
}
