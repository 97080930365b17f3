import type { App } from "../app.ts";
import { isCsv } from "../lib/csv.ts";
import { parseJson } from "../lib/foreign-json.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Ending, Run } from "./close.ts";
import { warningStep } from "./steps.ts";
import { workOnText } from "./text-work.ts";

/** The forms of an answer that only programs read. */
export type DataForm = "json" | "csv";

export function isInForm(text: string, form: DataForm): boolean {
  return form === "json" ? parseJson(text) !== undefined : isCsv(text.trim());
}

/** A step that says of an answer, or of the file with it, that no program can read it as what was asked for. */
export function notInForm(what: string, form: string) {
  return warningStep(
    `${what} is not valid ${form.toUpperCase()}: the model answered in another form. Try again, or use another model.`,
  );
}

/**
 * Returns the end of a run with its result in the form that the instruction asks for: without the fences that models
 * like to put around it. What is in another form stays as it is, and a step says so.
 */
export async function inForm(app: App, run: Run, ending: Ending): Promise<Ending> {
  const { form } = run.settings;
  if (form === null || ending.state !== "done" || ending.free !== undefined) return ending;
  if (isInForm(ending.result, form)) return { ...ending, form };
  const result = await withoutFence(app, run, { markdown: ending.result, language: form });
  if (isInForm(result, form)) return { ...ending, result, form };
  run.steps.push(notInForm("The answer", form));
  return ending;
}

/**
 * Returns the content of the only fenced block, as models like to put a file between fences, with a word before and
 * after.
 */
export async function withoutFence(
  app: App,
  { message }: Run,
  { markdown, language }: { markdown: string; language: string },
): Promise<string> {
  const fences = (await workOnText(app, "fences", { markdown }, sourceOf(message))) ?? [];
  const [only, other] = fences.filter((fence) => ["", language].includes(fence.language));
  return only === undefined || other !== undefined ? markdown : only.content;
}

/** Returns data as a block of code, as which a mail shows it unchanged. */
export function asBlock(data: string, form: DataForm | ""): string {
  const longest = (data.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}${form}\n${data.trimEnd()}\n${fence}`;
}
