import type { AskedCall, Objection } from "./guard.ts";
import { idsCalled, titleNaming } from "./named-places.ts";
import type { Tool } from "./tool.ts";

/**
 * Why a call must not go to a place that the instruction names by its title alone: others can share something of the
 * same title, and what the model has found need not be all. Null where it is the only one. Rejects only when `signal`
 * aborts.
 */
export async function objectionToTitle(
  { tool, args, trusted_text, places }: AskedCall,
  signal: AbortSignal,
): Promise<Objection | null> {
  const { titled } = tool;
  if (titled === undefined) return null;
  for (const id of titled.args.map((name) => args[name])) {
    const title = typeof id === "string" ? titleNaming(id, { trusted_text, places }) : undefined;
    if (typeof id !== "string" || title === undefined) continue;
    const { ok, text, places: found = [] } = await titled.called(title, signal);
    const lacks = { target: false, destroy: false, place: id };
    if (!ok) return { reason: `${tool.name} was to go to "${title}". ${text}`, lacks };
    const among = idsCalled(title, [...found, ...places]);
    if (among.length > 1) return { reason: manyCalled(tool, title, text), lacks: { ...lacks, among } };
  }
  return null;
}

function manyCalled({ name }: Tool, title: string, list: string): string {
  return `${name} was to go to "${title}", and more than one has that title. Name the one that is meant in the instruction, by its id or address:\n${list}`;
}
