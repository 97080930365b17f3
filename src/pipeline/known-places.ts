import { placesOf } from "../trust/guard/named-places.ts";
import type { Place, Tool, ToolOutcome } from "../trust/guard/tool.ts";
import type { Talk } from "./tool-loop.ts";

/** The most places that a run remembers, because each is checked against the instruction. */
const MAX_PLACES = 1_000;
const ENOUGH =
  "What this call has found is left out: no more places are looked through in one run. Name the one that is meant by its id or its address, or search more narrowly in another run.";

/**
 * Notes for the guard each place that our own tools have found, and where they have read. If no more places fit, the
 * model is not told of the rest either: if it knew of a place that the guard does not know, the title of another one
 * would count as the only one.
 */
export function notePlaces(
  talk: Pick<Talk, "places" | "read_at">,
  { tool, args, outcome }: { tool: Tool; args: Record<string, unknown>; outcome: ToolOutcome },
): ToolOutcome {
  if (tool.foreign) return outcome;
  const known = new Set(talk.places.map(keyOf));
  const fresh = (outcome.places ?? []).filter((place) => {
    const is_new = !known.has(keyOf(place));
    known.add(keyOf(place));
    return is_new;
  });
  if (tool.read_only && fresh.length > 0 && known.size > MAX_PLACES)
    return { ok: false, text: ENOUGH, files: [] };
  talk.places.push(...fresh);
  if (tool.read_only && outcome.ok)
    talk.read_at.push(
      ...[...placesOf(tool, args), ...(outcome.read ?? [])].map((id) => ({ id, site: tool.site })),
    );
  return outcome;
}

function keyOf({ id, name }: Place): string {
  return JSON.stringify([id, name]);
}
