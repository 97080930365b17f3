import { hideFileNames } from "../trust/own-words/file-names.ts";
import { type Command, type Parsed, parseCommand, type ParseOptions } from "./command.ts";

/** What somebody wrote, read by the command grammar. */
export interface Typed extends Parsed {
  /** The command without the names of files in it. */
  typed: string;
}

/** Reads words by the command grammar, in which nothing in the name of a file is a command. */
export function readTyped(words: string, filenames: string[], options: ParseOptions): Typed {
  const { text, shown, blank } = hideFileNames(words, filenames);
  const parsed = parseCommand(text, options);
  // Flags that make a run do less count even in the name of a file; `--private` does not, because it leaves no trace.
  const less = text === words ? {} : lessening(parseCommand(words, options).options);
  const values = Object.entries({ ...less, ...parsed.options }).map(([name, value]) => [
    name,
    typeof value === "string" ? shown(value) : value,
  ]);
  const command = shown(parsed.command);
  return {
    ...parsed,
    raw: words,
    command,
    typed: blank(parsed.command),
    options: Object.fromEntries(values),
  };
}

/**
 * The flags that make a run do less than it may. They count whoever wrote them, because to ignore one could do harm.
 */
export function lessening(options: Command["options"]): Command["options"] {
  return {
    ...(options["dry-run"] === true ? { "dry-run": true } : {}),
    ...(options["tools"] === false ? { tools: false } : {}),
    ...(options["ask"] === true ? { ask: true } : {}),
  };
}
