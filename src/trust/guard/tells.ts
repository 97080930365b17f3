import type { Going, Objection } from "./guard.ts";
import { TOO_MUCH } from "./packed/texts.ts";
import { destinationsOf } from "./strange-address.ts";
import { type Told, toldBeside, valuesIn } from "./told-beside.ts";
import { type Writing, writingsIn } from "./unfurled.ts";

/** What a call of an external tool tells others, as far as it counts for the next ones. */
export interface Tells {
  /** Empty if it goes to no site. */
  told: Told;
  written: Writing[];
  /** Whether the model can have said nothing by it, so that no address in its result is the model's own. */
  silent: boolean;
}

export interface Judgement {
  objection: Objection | null;
  /** Null unless a tool of others may make the call in a run that has read words of others. */
  tells: Tells | null;
}

/** Returns what a call tells that may be made in a run that has read words of others. */
export function tellsOf(going: Going): Tells {
  const { tool, args, said } = going;
  const to = sitesOf(going);
  const sites = to === TOO_MUCH ? new Set<string>() : to.sites;
  const { listed } = tool;
  const sayable = { sites, said, listed, tool: `${tool.target} ${tool.name}` };
  const silent = tool.read_only && toldBeside(args, { ...sayable, told: [], since: null }) === undefined;
  return {
    told: sites.size === 0 ? [] : valuesIn(args, sayable),
    written: tool.read_only ? [] : writingsIn(args, textsOf(going)).writings,
    silent,
  };
}

/** What decides whether an address may be written down. */
export function textsOf({ trusted_text, said, material, written }: Going) {
  return { trusted_text, material: `${said}\n${material}`, written };
}

/** The sites that a call goes to, and what stands in the way of that. */
export function sitesOf(going: Going) {
  const { tool, args, tainted, own_domains, given, calling_code, trusted_text, shared } = going;
  const { material } = textsOf(going);
  const look = { read_only: tool.read_only, tainted, own_domains, given, calling_code, material };
  return destinationsOf(args, { ...look, trusted_text, shared });
}
