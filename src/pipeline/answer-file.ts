import type { ToolFile } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { parseJson } from "../lib/foreign-json.ts";
import { escapeHtml } from "../mail/writing/markdown.ts";
import { filePage } from "../mail/writing/page.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Run } from "./close.ts";
import { MAX_TEXT_BYTES, namedApart } from "./made-files.ts";
import type { AttachType } from "./settings.ts";
import { warningStep } from "./steps.ts";
import { makeTextFile, workOnText } from "./text-work.ts";

/**
 * Returns the files that go out with an answer: the answer itself if the instruction wants it as a file, then what
 * tools made.
 */
export async function filesOut(app: App, run: Run, result: string): Promise<ToolFile[]> {
  const { settings, trust, made, steps } = run;
  if (settings.attach === null) return made;
  const text = await textOf(app, run, { result, attach: settings.attach });
  const file = await makeTextFile(
    app,
    { filename: `answer.${settings.attach}`, text },
    trust,
    sourceOf(run.message),
  );
  if (!("refusal" in file)) {
    if (settings.attach === "json" && parseJson(new TextDecoder().decode(file.bytes)) === undefined)
      steps.push(warningStep(`${file.filename} is not valid JSON: the model answered in another form.`));
    return [namedApart(made, file), ...made];
  }
  steps.push(warningStep(file.refusal));
  return made;
}

async function textOf(
  app: App,
  { trust, message }: Run,
  { result, attach }: { result: string; attach: AttachType },
): Promise<string> {
  if (attach === "md" || attach === "txt") return result;
  // Text that is too long for a file is not read first.
  if (result.length > MAX_TEXT_BYTES) return result;
  const from = sourceOf(message);
  const bare = await withoutFence(app, { markdown: result, language: attach }, from);
  if (attach !== "html") return bare.endsWith("\n") ? bare : `${bare}\n`;
  if (/^\s*<(?:!doctype|[a-z][a-z0-9]*[\s>])/i.test(bare)) return bare;
  const html = await workOnText(app, "html", { markdown: bare, trust }, from);
  return filePage(html?.text ?? `<pre>${escapeHtml(bare)}</pre>`);
}

/**
 * Returns the content of the only fenced block, as models like to put a file between fences, with a word before and
 * after.
 */
async function withoutFence(
  app: App,
  { markdown, language }: { markdown: string; language: string },
  from: ReadFor,
): Promise<string> {
  const fences = (await workOnText(app, "fences", { markdown }, from)) ?? [];
  const [only, other] = fences.filter((fence) => ["", language].includes(fence.language));
  return only === undefined || other !== undefined ? markdown : only.content;
}
