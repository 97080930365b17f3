/** The instruction of a message as it was understood: what it is aimed at, what is asked, with which options. */
export interface Command {
  target: string | null;
  command: string;
  options: Record<string, string | boolean>;
  contexts: string[];
  tags: string[];
  macro: string | null;
  raw: string;
}

const MAX_FLAGS = 20;
const MAX_CONTEXTS = 20;
const MAX_TAGS = 20;
const MAX_VALUE_CHARS = 1_000;
/** Where parsing ends: nobody means a command this far down. The text behind it is kept. */
const MAX_PARSED_CHARS = 20_000;

/** The end of a token: white space, or the punctuation of a sentence, says that the word is over. */
const END = String.raw`(?=$|\s|[.,;:!?)]+(?:\s|$))`;
const NAME = "[A-Za-z][A-Za-z0-9_-]{0,63}";
const SLUG = "[a-z][a-z0-9-]{0,63}";
const TARGET = new RegExp(`@(${NAME}(?::${NAME})?)${END}`, "y");
const TARGET_ALONE = new RegExp(`@(${NAME}(?::${NAME})?)[.,;:!?)]{0,3}[ \\t]*(?=\\n|$)`, "y");
const MACRO = new RegExp(`\\$(${SLUG})${END}`, "y");
const CONTEXT = new RegExp(`\\+(${SLUG})${END}`, "y");
const TAG = new RegExp(`#(\\p{L}[\\p{L}\\p{N}_/-]{0,49})${END}`, "uy");
const FLAG = new RegExp(
  `--(no-)?(${NAME})(?:=("(?:[^"\\\\\\n]|\\\\.){0,${MAX_VALUE_CHARS}}"|[^\\s"]{1,${MAX_VALUE_CHARS}}))?(?=$|\\s)`,
  "y",
);
/** A time of day behind the day of a schedule, where the quotation marks are missing: `--at=friday 17:00`. */
const CLOCK = /^[ \t]{1,3}\d{1,2}(?::\d{2}(?:[ \t]?[ap]m)?|[ \t]?[ap]m)(?![\w:])/i;
const TIMES = new Set(["at", "every", "until"]);
const ESCAPED = /\\(@|\+|#|\$|--)/y;
/** A fenced block of code, up to its closing line, or to the end of the text. */
const FENCE =
  /(`{3,}(?![^`\n]*`)|~{3,}(?!~))[^\n]*\n(?:(?:[\s\S]*?\n)??[ \t]*\1[`~]*[ \t\r]*(?=\n|$)|[\s\S]*$)/y;
const SIGIL = /[@+#$-]/;
/** Where commands end: at the line above a signature (RFC 3676 §4.3), or at a line that quotes somebody. */
const STOP = /^(?:--[ \t]*|>.*)$/m;

/** A command, and the names in it that nothing has. */
export interface Parsed extends Command {
  /** Tokens that name nothing: `+brand` where no such context is, `$weekly` where no such macro is. */
  unknown: string[];
}

export interface ParseOptions {
  /** Undoes what mail programs make of flags (see `withPlainFlags`). */
  mail?: boolean;
  /** False where `@target` is nothing but text. */
  aims?: boolean;
  /**
   * Whether there is a target of this name. Its `@target` counts on a line of its own as well, wherever that line is.
   */
  isTarget?: (name: string) => boolean;
  /** Whether there is a context, or a macro, of this slug; a token that names none stays text. By default all count. */
  isContext?: (slug: string) => boolean;
  isMacro?: (slug: string) => boolean;
}

/**
 * Reads an instruction by the command grammar. Whatever is no token of the grammar stays text, so nothing here can
 * fail.
 */
export function parseCommand(raw: string, options: ParseOptions = {}): Parsed {
  const stop = Math.min(STOP.exec(raw)?.index ?? raw.length, wholeWords(raw));
  const head = raw.slice(0, stop);
  const scan = scanHead(options.mail ? withPlainFlags(head) : head, options);
  return { ...scan.found, command: (scan.text + raw.slice(stop)).trim(), raw };
}

/** Where reading ends at the latest: at white space, because half a token would be another token. */
function wholeWords(raw: string): number {
  if (raw.length <= MAX_PARSED_CHARS) return raw.length;
  let end = MAX_PARSED_CHARS;
  while (end > 0 && !/\s/.test(raw.charAt(end))) end -= 1;
  return end;
}

/** Undoes what mail programs make of `--name="value"`: one dash for two, and curly quotes. */
function withPlainFlags(text: string): string {
  return text.replaceAll(
    /(^|\s)(?:[\u2013\u2014]|--)([A-Za-z][^\s=]*)(=(?:[\u201c\u201d\u201e"][^\u201c\u201d\u201e"\n]*[\u201c\u201d\u201e"])?)?/g,
    (all, before: string, name: string, value = "") =>
      /^[A-Za-z][\w-]*$/.test(name)
        ? `${before}--${name}${value.replaceAll(/[\u201c\u201d\u201e]/g, '"')}`
        : all,
  );
}

type Found = Omit<Command, "command" | "raw"> & Pick<Parsed, "unknown">;

/** The state of reading one text: what has been found in it so far, and what can be found. */
interface Scan extends ParseOptions {
  text: string;
  found: Found;
}

function scanHead(text: string, known: ParseOptions): { text: string; found: Found } {
  const found: Found = { target: null, options: {}, contexts: [], tags: [], macro: null, unknown: [] };
  const scan = { ...known, text, found };
  let kept = "";
  let first = true;
  for (let at = 0; at < text.length;) {
    const code = codeAt(text, at);
    const token: number =
      SIGIL.test(text.charAt(at)) && beginsWord(text, at) ? takeToken(scan, at, first) : 0;
    const plain =
      token > 0 ? { text: "", length: token + gapAfter(text, at + token, kept) } : plainAt(text, at, code);
    kept += plain.text;
    first &&= plain.text.trim() === "";
    at += plain.length;
  }
  return { text: kept, found };
}

function beginsWord(text: string, at: number): boolean {
  return at === 0 || /\s/.test(text.charAt(at - 1));
}

/** Returns how many blanks behind a token are removed with it. Only one side's are, so that one gap stays. */
function gapAfter(text: string, at: number, kept: string): number {
  if (kept !== "" && !/\s$/.test(kept)) return 0;
  return /^[ \t]*/.exec(text.slice(at, at + MAX_GAP))?.[0].length ?? 0;
}

/**
 * The text that is kept at `at`, and its length in the source: a piece of code as it is, an escaped sigil without its
 * backslash, or one character.
 */
function plainAt(text: string, at: number, code: number): { text: string; length: number } {
  if (code > 0) return { text: text.slice(at, at + code), length: code };
  const escaped = beginsWord(text, at) ? matchAt(ESCAPED, text, at) : null;
  return escaped
    ? { text: escaped[1] ?? "", length: escaped[0].length }
    : { text: text.charAt(at), length: 1 };
}

const MAX_GAP = 1_000;

/** Notes the token that stands at `at`, and returns its length; 0 if there is none that counts. */
function takeToken(scan: Scan, at: number, first: boolean): number {
  const { found, text } = scan;
  const anything = Object.keys(found.options).length + found.contexts.length + found.tags.length > 0;
  const leads = first && !anything && found.macro === null;
  const target = leads || standsAlone(scan, at) ? takeTarget(scan, at) : 0;
  if (target > 0) return target;
  const lead = leads ? takeMacro(scan, at) : 0;
  return lead || takeFlag(found, text, at) || takeContext(scan, at) || takeTag(found, text, at);
}

/** Whether the line that begins at `at` holds nothing but the name of an existing target. */
function standsAlone({ text, isTarget = () => false }: Scan, at: number): boolean {
  const target = at === 0 || text.charAt(at - 1) === "\n" ? matchAt(TARGET_ALONE, text, at) : null;
  return target !== null && isTarget((target[1] ?? "").toLowerCase());
}

function takeTarget({ found, text, aims = true }: Scan, at: number): number {
  const target = aims && found.target === null ? matchAt(TARGET, text, at) : null;
  if (!target) return 0;
  found.target = (target[1] ?? "").toLowerCase();
  return target[0].length;
}

function takeMacro({ found, text, isMacro = () => true }: Scan, at: number): number {
  const macro = matchAt(MACRO, text, at);
  if (!macro) return 0;
  if (!isMacro(macro[1] ?? "")) return noteUnknown(found, macro[0]);
  found.macro = macro[1] ?? "";
  return macro[0].length;
}

function takeFlag({ options }: Found, text: string, at: number): number {
  const flag = matchAt(FLAG, text, at);
  if (!flag) return 0;
  const [all, no, name = "", value] = flag;
  const key = name.toLowerCase();
  if (no !== undefined && value !== undefined) return 0;
  if (!Object.hasOwn(options, key) && Object.keys(options).length >= MAX_FLAGS) return 0;
  const clock = value === undefined ? "" : clockBehind(key, value, text.slice(at + all.length));
  options[key] = value === undefined ? no === undefined : unquoted(value) + clock;
  return all.length + clock.length;
}

/** The time of day that belongs to a time without quotation marks, with the blanks before it; "" where there is none. */
function clockBehind(key: string, value: string, rest: string): string {
  return TIMES.has(key) && !value.startsWith('"') ? (CLOCK.exec(rest)?.[0] ?? "") : "";
}

function takeContext({ found, text, isContext = () => true }: Scan, at: number): number {
  const context = matchAt(CONTEXT, text, at);
  const slug = context?.[1] ?? "";
  if (!context || found.contexts.length + found.unknown.length >= MAX_CONTEXTS) return 0;
  if (isContext(slug)) return note(found.contexts, slug, context[0]);
  return noteUnknown(found, context[0]);
}

/** Notes a token that names nothing. Its length is 0, so that its text stays. */
function noteUnknown({ unknown }: Found, token: string): 0 {
  note(unknown, token, "");
  return 0;
}

function takeTag({ tags }: Found, text: string, at: number): number {
  const tag = tags.length < MAX_TAGS ? matchAt(TAG, text, at) : null;
  return tag ? note(tags, (tag[1] ?? "").toLowerCase(), tag[0]) : 0;
}

function note(list: string[], name: string, token: string): number {
  if (!list.includes(name)) list.push(name);
  return token.length;
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(["\\])/g, "$1") : value;
}

/** The length of the code that begins at `at`: a fenced block, or a span between equal runs of backticks. */
function codeAt(text: string, at: number): number {
  const char = text.charAt(at);
  if (char !== "`" && char !== "~") return 0;
  const lineStart = at === 0 || text.charAt(at - 1) === "\n";
  const fence = lineStart ? matchAt(FENCE, text, at) : null;
  if (fence) return fence[0].length;
  if (char !== "`") return 0;
  const runs = text.slice(at).matchAll(/`+/g);
  const length = runs.next().value?.[0].length ?? 0;
  // A loop, not a collected list: among many runs the fitting one mostly comes soon.
  for (const run of runs) if (run[0].length === length) return run.index + length;
  return length;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
