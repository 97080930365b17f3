import { addGiven, noGivenIds } from "../trust/guard/given-ids.ts";
import type { Tells } from "../trust/guard/tells.ts";
import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import { excerptOf } from "../trust/shown/redact.ts";
import { stepName } from "./steps.ts";
import type { Talk } from "./tool-loop.ts";

/** Notes where the call may have changed something. Returns whether the model had no part in what the tool said. */
export function noteShaped(
  { shaped }: Talk,
  { target, read_only, foreign }: Tool,
  { tainted, tells }: { tainted: boolean; tells: Tells | null },
): boolean {
  if (tainted && !read_only) shaped.add(target);
  return (!tainted || tells?.silent === true || !foreign) && !shaped.has(target);
}

export function noteGiven({ given }: Talk, { foreign, target }: Tool, { ok, text }: ToolOutcome): void {
  if (!foreign || !ok) return;
  const ids = given.get(target) ?? noGivenIds();
  addGiven(ids, text);
  given.set(target, ids);
}

/** Notes what a server has answered, for whoever is asked about a change of it. Only JSON says which item is meant. */
export function noteAnswer(
  { answers }: Talk,
  { foreign, target }: Tool,
  { args, outcome: { ok, text } }: { args: Record<string, unknown>; outcome: ToolOutcome },
): void {
  if (!foreign || !ok || !/^\s{0,20}[[{]/.test(text) || text.length > MAX_ANSWER_CHARS) return;
  const known = answers.get(target) ?? [];
  answers.set(target, [...known, { args, text }].slice(-MAX_ANSWERS));
}

/** What is kept of the answers of one server. */
const MAX_ANSWER_CHARS = 50_000;
const MAX_ANSWERS = 16;

/** Notes that a tool itself says that it failed; a later call of it that succeeds has mended that. */
export function noteFailure(
  { failed }: Talk,
  tool: Tool,
  { said, round }: { said: ToolOutcome; round: number },
): void {
  const { ok, text, of_server = false, unanswered = false } = said;
  const key = `${tool.target} ${stepName(tool.name)}`;
  if (ok && (failed.get(key)?.round ?? round) < round) failed.delete(key);
  if (ok || of_server || unanswered) return;
  failed.set(key, { round, sentence: `${key} failed: ${excerptOf(text)}` });
}
