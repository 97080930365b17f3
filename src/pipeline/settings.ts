import type { MessageRow } from "../db/schema.ts";
import { closestName } from "../lib/closest-name.ts";
import { switchOf } from "../lib/switch-of.ts";
import type { Command } from "./command.ts";
import type { DataForm } from "./form.ts";

/** What the flags of an instruction say about its run. */
export interface RunSettings {
  /** Label or id of another of the owner's model connections; null for the inbox's own. */
  connection: string | null;
  model: string | null;
  max_tokens: number | null;
  temperature: number | null;
  /** Sentences for the model about the form of its answer. */
  wishes: string[];
  /** The form of data in which the answer itself is wanted. */
  form: DataForm | null;
  /** Whether the answer has a form in which nothing may stand below it. */
  for_programs: boolean;
  /** False when no answer is to be mailed. */
  reply: boolean;
  /** Whether the message begins a conversation of its own. */
  fresh: boolean;
  /** Whether to say what would be done instead of doing it. */
  dry_run: boolean;
  /** Whether tools may be used at all. */
  tools: boolean;
  /** Whether the owner is asked before each call that changes something. */
  ask: boolean;
  /** Whether tools may delete or overwrite. */
  allow_destructive: boolean;
  /** The type of file in which the answer is handed over as well. */
  attach: AttachType | null;
  /** Whether nothing of the answer is kept once it is given. */
  private: boolean;
  /** The rule that has chosen a setting, where the instruction has not: nobody has typed a flag for it. */
  by_rule: ByRule;
}

type ByRule = Partial<Record<"model" | "connection" | "reply" | "format" | "attach", string>>;

export type AttachType = "md" | "txt" | "csv" | "html" | "json";

const FORMATS: Record<string, string> = {
  text: "Answer in plain text without any markup.",
  markdown: "Answer in Markdown.",
  html: "Answer as an HTML fragment, and nothing else.",
  json: "Answer with one valid JSON value, and nothing else: no code fence, no words around it.",
  csv: "Answer as CSV with a header line (RFC 4180), and nothing else.",
};
/** The value of `--format` that an answer needs so that a file of each type can be made of it. */
const ATTACH_FORMATS: Record<AttachType, string> = {
  md: "markdown",
  txt: "text",
  csv: "csv",
  html: "html",
  json: "json",
};
const MAX_TOKENS = 1_000_000;
const MAX_TEMPERATURE = 2;
const MAX_NAME_CHARS = 200;
/**
 * Each flag with what whoever has it written by somebody else gains: nothing where it says how much is done, or in what form; power
 * where it chooses who reads, hides, destroys, or lasts.
 */
const FLAGS: Record<string, "nothing" | "power"> = {
  model: "power",
  connection: "power",
  format: "nothing",
  lang: "nothing",
  "max-tokens": "nothing",
  temperature: "nothing",
  reply: "nothing",
  new: "nothing",
  "dry-run": "nothing",
  private: "power",
  tools: "nothing",
  ask: "nothing",
  "allow-destructive": "power",
  attach: "nothing",
  every: "power",
  at: "power",
  until: "power",
  tz: "power",
  over: "power",
};
const KNOWN = new Set(Object.keys(FLAGS));

/** The flags that no tool may write into a mail. */
export const POWERFUL_FLAGS = [...KNOWN].filter((name) => FLAGS[name] === "power").map((name) => `--${name}`);

/** Whether a flag of this name means something to the run, and not to the model alone. */
export function isKnownFlag(name: string): boolean {
  return KNOWN.has(name);
}

const ALIKE_CHARS = 3;
/** From so many letters on one that is wrong may be a slip. */
const MIN_WRONG_CHARS = 4;

type Options = Command["options"];

/** Reads the flags. A flag with an invalid value only causes a warning. */
export function readSettings(
  { options, tags }: Pick<Command, "options" | "tags">,
  authority: MessageRow["authority"],
  by_rule: ByRule = {},
): { settings: RunSettings; warnings: string[] } {
  const warnings: string[] = [];
  const warn = (sentence: string): null => {
    warnings.push(sentence);
    return null;
  };
  const owned = (name: string): string | null => {
    const value = options[name];
    if (value === undefined) return null;
    if (authority !== "owner") return warn(`--${name} is the owner's to choose; it was left out.`);
    if (typeof value === "string" && value.trim() !== "" && value.length <= MAX_NAME_CHARS) return value;
    return warn(`--${name} needs a value, such as --${name}=NAME; it was left out.`);
  };
  const turned = (name: string, usual: boolean): boolean => {
    const value = options[name];
    if (value === undefined) return usual;
    return switchOf(value) ?? warn(`--${name} takes no value but true or false; it was left out.`) ?? usual;
  };
  const number = (name: string, max: number, whole: boolean): number | null => {
    const value = options[name];
    if (value === undefined) return null;
    const parsed = typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
    if (parsed >= (whole ? 1 : 0) && parsed <= max && (!whole || Number.isInteger(parsed))) return parsed;
    return warn(`--${name} must be a ${whole ? "whole " : ""}number up to ${max}; it was left out.`);
  };
  const attach = attachType(options, warn);
  warnings.push(...slips(options));
  const settings: RunSettings = {
    connection: owned("connection"),
    model: owned("model"),
    max_tokens: number("max-tokens", MAX_TOKENS, true),
    temperature: number("temperature", MAX_TEMPERATURE, false),
    wishes: [
      ...formatWish(options, attach, { warn, by_rule }),
      ...languageWish(options, warn),
      ...otherWishes(options),
      ...tagWish(tags),
    ],
    form: dataForm(options),
    for_programs: /^(json|csv|html)$/i.test(String(options["format"] ?? attach ?? "")),
    reply: turned("reply", true),
    fresh: turned("new", false),
    dry_run: turned("dry-run", false),
    tools: turned("tools", true),
    ask: turned("ask", false),
    allow_destructive: turned("allow-destructive", false),
    attach,
    private: turned("private", false),
    by_rule,
  };
  return { settings, warnings };
}

function dataForm({ format }: Options): DataForm | null {
  const form = String(format).toLowerCase();
  return form === "json" || form === "csv" ? form : null;
}

function attachType({ attach: value }: Options, warn: (sentence: string) => null): AttachType | null {
  if (value === undefined || value === false) return null;
  const type = String(value).toLowerCase();
  if (Object.hasOwn(ATTACH_FORMATS, type)) return type as AttachType;
  return warn(`--attach must be one of ${Object.keys(ATTACH_FORMATS).join(", ")}; it was left out.`);
}

/** The form that was asked for or, if none was, the one that the attached file needs. */
function formatWish(
  options: Options,
  attach: AttachType | null,
  { warn, by_rule }: { warn: (sentence: string) => null; by_rule: ByRule },
): string[] {
  const needed = attach === null ? undefined : ATTACH_FORMATS[attach];
  const value = options["format"] ?? needed;
  if (value === undefined) return [];
  if (needed !== undefined && needed !== String(value).toLowerCase())
    warn(
      `${saidBy("attach", attach, by_rule)} asks for ${needed}, but ${saidBy("format", value, by_rule)} was done.`,
    );
  const wish = Object.hasOwn(FORMATS, String(value).toLowerCase())
    ? FORMATS[String(value).toLowerCase()]
    : undefined;
  if (wish !== undefined) return [wish];
  warn(`--format must be one of ${Object.keys(FORMATS).join(", ")}; it was left out.`);
  return [];
}

/** An option as it is called where it was chosen. */
function saidBy(name: "attach" | "format", value: unknown, by_rule: ByRule): string {
  const rule = by_rule[name];
  return rule === undefined
    ? `--${name}=${String(value)}`
    : `\`${name}: ${String(value)}\` of the rule “${rule}”`;
}

function languageWish({ lang }: Options, warn: (sentence: string) => null): string[] {
  if (lang === undefined) return [];
  if (typeof lang === "string" && lang.trim() !== "") return [`Answer in this language: ${lang}.`];
  warn("--lang needs a value, such as --lang=French; it was left out.");
  return [];
}

/** Warnings about misspelt flags. A name that only shares a letter or two with a flag is not taken for a slip. */
function slips(options: Options): string[] {
  const unknown = Object.entries(options).filter(([name]) => !KNOWN.has(name));
  return unknown.map(([name, value]) => {
    const near = closestName(name, [...KNOWN]);
    const no = value === false ? "no-" : "";
    const is_like =
      near !== undefined && (sharesAnEnd(near, name) || isSwapped(near, name) || isOneOff(near, name));
    const meant = is_like ? ` Did you mean --${no}${near}?` : "";
    return `--${no}${name} is no option here; the model was told of it.${meant}`;
  });
}

/** "--formt" for "--format", or "--alow-destructive" for "--allow-destructive". */
function sharesAnEnd(one: string, other: string): boolean {
  return one.startsWith(other.slice(0, ALIKE_CHARS)) || one.endsWith(other.slice(-ALIKE_CHARS));
}

/** "--fromat" for "--format". */
function isSwapped(one: string, other: string): boolean {
  const letters = (name: string): string => Array.from(name).toSorted().join("");
  return letters(one) === letters(other);
}

/** "--evry" for "--every", or "--att" for "--at": a letter is missing, or one too many. Another letter makes a word of two another one. */
function isOneOff(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  const letters = Array.from(long);
  if (short.length < long.length) return letters.some((_, at) => letters.toSpliced(at, 1).join("") === short);
  return long.length >= MIN_WRONG_CHARS && letters.filter((letter, at) => letter !== short[at]).length === 1;
}

/** Passes on flags that are unknown here, since they may mean something to the model. */
function otherWishes(options: Options): string[] {
  const others = Object.entries(options).filter(([name]) => !KNOWN.has(name));
  if (others.length === 0) return [];
  const written = others.map(([name, value]) => {
    if (typeof value === "string") return `${name}: ${value}`;
    return value ? name : `no ${name}`;
  });
  return [`Options given with the instruction: ${written.join("; ")}.`];
}

/** Passes on the tags: inside a sentence they may be words that the model needs. */
function tagWish(tags: string[]): string[] {
  if (tags.length === 0) return [];
  return [`Tags given with the instruction: ${tags.map((tag) => `#${tag}`).join(", ")}.`];
}
