import type { AskedCall, Objection } from "./guard.ts";
import { idsCalled, idsMixedUp, titleNaming } from "./named-places.ts";
import { isTitleQuoted } from "./named-titles.ts";
import type { Tool } from "./tool.ts";

/**
 * Why a call must not go to a place that the instruction names by its title alone: others can share something of the
 * same title, and what the model has found need not be all. Null where it is the only one. Rejects only when `signal`
 * aborts.
 */
export async function objectionToTitle(asked: AskedCall, signal: AbortSignal): Promise<Objection | null> {
  const { tool, args, places } = asked;
  const { titled } = tool;
  if (titled === undefined) return null;
  for (const id of titled.args.map((name) => args[name])) {
    const title = typeof id === "string" ? titleNaming(id, asked) : undefined;
    if (typeof id !== "string" || title === undefined) continue;
    const { ok, text, places: found = [] } = await titled.called(wordsToFind(title, asked), signal);
    const lacks = { target: false, destroy: false, place: id };
    if (!ok) return { reason: `${tool.name} was to go to "${title}". ${text}`, lacks };
    const all = [...found, ...places];
    const same = idsCalled(title, all);
    const many = same.length > 1;
    // What is only read may be the one or the other.
    const among = many || tool.read_only ? same : idsMixedUp(title, all, asked);
    const why = many ? "more than one has that title" : "another one is called almost so";
    if (among.length > 1)
      return {
        reason: manyCalled(tool, title, { why, list: linesWith(among, text) }),
        lacks: { ...lacks, among },
      };
  }
  return null;
}

/** Its beginning, where the title could be words that go on or end sooner than is meant. */
function wordsToFind(title: string, { tool, instruction, trusted_text }: AskedCall): string {
  if (tool.read_only || isTitleQuoted(title, { instruction, trusted_text })) return title;
  return title.trim().split(/\s+/).slice(0, 2).join(" ");
}

function linesWith(ids: string[], text: string): string {
  return text
    .split("\n")
    .filter((line) => ids.some((id) => line.includes(id)))
    .join("\n");
}

function manyCalled({ name }: Tool, title: string, { why, list }: { why: string; list: string }): string {
  return `${name} was to go to "${title}", and ${why}. Name the one that is meant in the instruction, by its id or address:\n${list}`;
}
