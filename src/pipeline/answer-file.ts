import type { ToolFile } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import { escapeHtml } from "../mail/writing/markdown.ts";
import { filePage } from "../mail/writing/page.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Run } from "./close.ts";
import { isInForm, notInForm, withoutFence } from "./form.ts";
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
    if (isSpoilt(run, result, new TextDecoder().decode(file.bytes)))
      steps.push(notInForm(file.filename, settings.attach));
    return [namedApart(made, file), ...made];
  }
  steps.push(warningStep(file.refusal));
  return made;
}

/** Whether no program can read the file as what it is called, and no step has said so of the answer yet. */
function isSpoilt({ settings }: Run, result: string, text: string): boolean {
  const { attach, form } = settings;
  if ((attach !== "json" && attach !== "csv") || isInForm(text, attach)) return false;
  return attach !== form || isInForm(result, form);
}

async function textOf(
  app: App,
  run: Run,
  { result, attach }: { result: string; attach: AttachType },
): Promise<string> {
  if (attach === "md" || attach === "txt") return result;
  // Text that is too long for a file is not read first.
  if (result.length > MAX_TEXT_BYTES) return result;
  const bare = await withoutFence(app, run, { markdown: result, language: attach });
  if (attach !== "html") return bare.endsWith("\n") ? bare : `${bare}\n`;
  if (/^\s*<(?:!doctype|[a-z][a-z0-9]*[\s>])/i.test(bare)) return bare;
  const html = await workOnText(app, "html", { markdown: bare, trust: run.trust }, sourceOf(run.message));
  return filePage(html?.text ?? `<pre>${escapeHtml(bare)}</pre>`);
}
