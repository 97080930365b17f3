/** A word with which an instruction may go on. */
export interface Suggestion {
  /** The text to insert; one that ends with `=` waits for a value. */
  text: string;
  words: string;
}

/** The names that an instruction of this account can hold, by their sign. */
export interface Vocabulary {
  targets: Suggestion[];
  contexts: Suggestion[];
  macros: Suggestion[];
  tags: Suggestion[];
  /** Labels of model connections, and the models they ask. */
  connections: string[];
  models: string[];
}

const FORMATS = ["text", "markdown", "html", "json", "csv"];
const FILES = ["md", "txt", "csv", "html", "json"];
export const FLAGS: Suggestion[] = [
  { text: "--format=", words: "The form of the answer" },
  { text: "--lang=", words: "The language of the answer, such as French" },
  { text: "--attach=", words: "The answer as a file, too" },
  { text: "--connection=", words: "Asks another of your models" },
  { text: "--model=", words: "Asks another model of the same connection" },
  { text: "--max-tokens=", words: "How long the answer may get" },
  { text: "--temperature=", words: "0 for sober, 2 for wild" },
  { text: "--no-tools", words: "Uses no tools" },
  { text: "--ask", words: "Asks you before each change" },
  { text: "--allow-destructive", words: "Lets the tool you name delete or overwrite" },
  { text: "--dry-run", words: "Says what would be done, and does nothing" },
  { text: "--new", words: "Begins a new conversation" },
  { text: "--no-reply", words: "In a mail: sends no answer" },
  { text: "--every=", words: 'Again and again, such as "weekday 8:00"' },
  { text: "--at=", words: 'Later, such as "friday 17:00"' },
  { text: "--until=", words: "The last day on which it is done" },
  { text: "--tz=", words: "The time zone of these times, such as Europe/Berlin" },
  { text: "--over=", words: "Makes it a digest of the mail that came in" },
  { text: "--private", words: "Keeps nothing of what is read and answered" },
];

/** The last word, if it may be a token of the command grammar; a quoted value may hold blanks. */
const TYPED = /(?:^|\s)(--[\w-]+="[^"\n]*|--\S*|[@+$#]\S*)$/;
/** A signature or a quoted line, below which nothing is a command. */
const OVER = /^(?:--[ \t]*|>.*)\n/m;
/** Nothing but blanks: a target stands first, a macro first or right behind it. */
const LEADS = /^\s*$/;
const LEADS_MACRO = /^\s*(@\S+\s+)?$/;

/** What may complete `before`, the text up to the caret, and how much of its end that replaces. */
export function complete(before: string, known: Vocabulary): { typed: string; fitting: Suggestion[] } {
  const typed = OVER.test(before) ? "" : (TYPED.exec(before)?.[1] ?? "");
  const offered = typed === "" ? [] : offeredFor(typed, before.slice(0, before.length - typed.length), known);
  const wanted = typed.toLowerCase();
  // A word that is complete gets no suggestions, so that Enter does what it usually does.
  if (offered.some(({ text }) => text === typed && !text.endsWith("="))) return { typed, fitting: [] };
  // A tool server may be named without its prefix.
  const fits = (text: string): boolean =>
    text.startsWith(wanted) || text.replace("@mcp:", "@").startsWith(wanted);
  return { typed, fitting: offered.filter(({ text }) => fits(text.toLowerCase())) };
}

function offeredFor(typed: string, earlier: string, known: Vocabulary): Suggestion[] {
  switch (typed[0]) {
    case "@":
      return LEADS.test(earlier) ? known.targets : [];
    case "$":
      return LEADS_MACRO.test(earlier) ? known.macros : [];
    case "+":
      return known.contexts;
    case "#":
      return known.tags;
    default:
      return typed.includes("=") ? valuesOf(typed, known) : FLAGS;
  }
}

function valuesOf(typed: string, { connections, models }: Vocabulary): Suggestion[] {
  const name = typed.slice(0, typed.indexOf("=") + 1);
  const values = {
    "--format=": FORMATS,
    "--attach=": FILES,
    "--over=": ["inbox", "all"],
    "--connection=": connections,
    "--model=": models,
  };
  return (values[name as keyof typeof values] ?? []).map((value) => ({
    text: `${name}${quoted(value)}`,
    words: "",
  }));
}

function quoted(value: string): string {
  return /[\s"]/.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value;
}
