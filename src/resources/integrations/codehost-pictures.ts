/** What a page loads by itself when somebody looks at it, or draws with what does. */
const LOADING_TAG =
  /<(?=\/?(?:img|image|picture|source|video|audio|track|iframe|frame|frameset|object|embed|applet|svg|use|feimage|link|style|script|input|meta|base|body|math|mglyph|bgsound|layer|portal|fencedframe|model|g-emoji|gl-emoji)\b)/gi;

/** Code with a language, or a class, that HTML gives it. */
const MARKED_CODE = /<(?=(?:pre|code)[\s/]+[^\s>])/gi;

/** A fence where one can begin a block of code, within quotes, lists and notes. */
const FENCE = /^(?:[ \t>*+\-:.)\d]|\[\^[^\]]*\]:)*(?:`{3,}|~{3,})/;
/** Kept by `split`. */
const LINE_ENDS = /(\r\n|[\r\n])/;

/** Languages of which a code host shows the words and no more: others it may draw, with pictures from wherever the text says. */
const SHOWN = new Set(
  `text txt plain plaintext console terminal shell shellsession sh bash zsh fish powershell ps1 bat cmd diff patch log
  json json5 jsonc jsonl yaml yml toml ini conf cfg properties dotenv env xml html xhtml css scss sass less
  js jsx javascript mjs cjs ts tsx typescript vue svelte astro py python pycon rb ruby erb go golang rs rust
  c h cpp c++ cc hpp cs csharp c# java kt kotlin scala groovy gradle swift objc objective-c dart php perl pl lua r
  julia jl matlab haskell hs elixir ex erlang erl clojure clj lisp scheme elm ocaml fsharp f# zig nim crystal solidity
  asm nasm wasm sql plsql graphql gql proto protobuf http nginx apache dockerfile docker makefile make cmake hcl
  terraform tf nix vim csv tsv md markdown rst tex latex math regex suggestion`.split(/\s+/),
);
/** GitLab says behind it which lines it is about. */
const SUGGESTION = /^suggestion:-\d+\+\d+$/;

/** Two brackets beside each other, as Markdown or HTML may write them. */
const BRACKET = String.raw`(?:\\?\[|&#0*91;?|&#x0*5b;?|&lsqb;|&lbrack;)`;
const TWO_BRACKETS = new RegExp(`(${BRACKET})(?=${BRACKET})`, "gi");
/** Before what an address is made of. */
const ESCAPE = /\\(?=[:/.])/g;
/** What makes an address, or an entity that may. */
const ADDRESS = /\/\/|&(?:#\w+|\w+;)|\.(?:jpe?g|png|tiff?|webp|gif|bmp|ico|svg|avif|apng)\b/i;

/**
 * A text that a code host will show as Markdown, so that no picture is fetched from an address in it: whoever looks
 * at the issue, or the code host itself, would else tell that address whatever its query holds.
 */
export function withoutPictures(text: string): string {
  const plain = text.replaceAll("![", "!\\[").replaceAll(LOADING_TAG, "&lt;").replaceAll(MARKED_CODE, "&lt;");
  const shown = plain.split(LINE_ENDS).map(withShownCode).join("");
  return shown.split("\n").map(withoutShortPicture).join("\n");
}

/** A line that begins no block of code but one whose words are shown. */
function withShownCode(line: string): string {
  const opening = FENCE.exec(line)?.[0] ?? "";
  const info = line.slice(opening.length).trim();
  // Backticks with others behind them are code within a line.
  const is_code = opening !== "" && info !== "" && !(opening.endsWith("`") && info.includes("`"));
  const language = info.split(/\s/, 1)[0]?.toLowerCase() ?? "";
  if (!is_code || SHOWN.has(language) || SUGGESTION.test(language)) return line;
  return `${opening}text ${info}`;
}

/** Gitea and Forgejo look for `[[address]]` in the words as they are shown, so that no escape helps against it. */
function withoutShortPicture(line: string): string {
  return ADDRESS.test(line.replaceAll(ESCAPE, "")) ? line.replaceAll(TWO_BRACKETS, "$1 ") : line;
}
