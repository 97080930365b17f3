import type { ToolFile } from "../ai/tool.ts";
import { fencesOf, markdownToHtml } from "../mail/markdown.ts";
import { parseJson } from "../lib/quote.ts";
import { htmlPage } from "../mail/page.ts";
import type { Run } from "./close.ts";
import { linkGuard } from "./links.ts";
import { namedApart, textFile } from "./made-files.ts";
import type { AttachType } from "./settings.ts";
import { warning } from "./steps.ts";

/** What goes out with an answer: the answer itself if the instruction wants it as a file, then what tools made. */
export function filesOut({ settings, trust, made, steps }: Run, result: string): ToolFile[] {
  if (settings.attach === null) return made;
  const file = textFile(
    { filename: `answer.${settings.attach}`, text: textOf(result, settings.attach, trust) },
    trust,
  );
  if (!("refusal" in file)) {
    if (settings.attach === "json" && parseJson(new TextDecoder().decode(file.bytes)) === undefined)
      steps.push(warning(`${file.filename} is not valid JSON: the model answered in another form.`));
    return [namedApart(made, file), ...made];
  }
  steps.push(warning(file.refusal));
  return made;
}

function textOf(result: string, attach: AttachType, trust: Run["trust"]): string {
  if (attach === "md" || attach === "txt") return result;
  const bare = withoutFence(result, attach);
  if (attach !== "html") return bare.endsWith("\n") ? bare : `${bare}\n`;
  return /^\s*<(?:!doctype|[a-z][a-z0-9]*[\s>])/i.test(bare)
    ? bare
    : htmlPage(markdownToHtml(bare, linkGuard(trust)), "");
}

/** Models like to put a file between marks of code, with a word before and after. */
function withoutFence(text: string, language: string): string {
  const [only, other] = fencesOf(text).filter((fence) => ["", language].includes(fence.language));
  return only === undefined || other !== undefined ? text : only.content;
}
