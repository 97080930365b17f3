import { actingText } from "./acting-text.ts";
import type { Place, ReadPlace, Tool } from "./tool.ts";
import type { Authority } from "../../db/schema.ts";
import { isNamedIssue, type Numbered, wholeName } from "./named-issues.ts";
import { MEMORY_TARGET, means } from "../target-names.ts";
import { isNamedPlace, placesOf } from "./named-places.ts";
import { TOO_MUCH } from "./packed/texts.ts";
import { isAtOwn } from "./strange-address.ts";
import { sitesOf, textsOf } from "./tells.ts";
import type { Scope } from "../../db/inbox-columns.ts";
import { objectionToOrder } from "./written-orders.ts";
import { type Listed, listedIn, type Told, toldBeside } from "./told-beside.ts";
import type { GivenIds } from "./given-ids.ts";
import { MAX_OF_SITE, type Unfit, unfitAddress, type Writing } from "./unfurled.ts";
import { looksByName } from "./looks.ts";

/**
 * The trust boundary around tools. A run may use what its inbox, its sender and its instruction allow together
 * (decision L.7); once it has read anything that others wrote, a call has to fit to what the instruction itself
 * says (L.8, P.4). A model that obeys everything it reads must get nowhere with it.
 */
export interface Guard {
  powersOf: (asked: Asked) => Powers;
  /**
   * Returns why a call must not be made; null if it may, and WHERE if that depends on where it goes: see
   * `objectionToPlaces`.
   */
  objectionTo: (call: AskedCall) => Objection | typeof WHERE | null;
}

export const WHERE = Symbol("depends on where it goes");

export interface Objection {
  /** The reason, as a sentence. */
  reason: string;
  /** What the instruction would have to contain to allow the call; null where nothing would allow it. */
  lacks: Lacks | null;
  /** Whether it is only that the owner has not read what would be written. */
  unseen?: boolean;
}

export interface Lacks {
  /** Whether the instruction would have to begin with the target. */
  target: boolean;
  /** Whether it would need `--allow-destructive`. */
  destroy: boolean;
  /** The place that the call was to go to, which the instruction would have to name. */
  place: string | null;
  /** The place that was read and whose content the call could have revealed. */
  source?: string;
  /** Whether the results of a search were read that may contain content of any place. */
  searched?: boolean;
  /** Ids of all places with the title that the instruction uses. */
  among?: string[];
  /** Whether the title in quotation marks would name the place as well. */
  titled?: boolean;
}

/** What people with authority have decided: the owner of the inbox, and the author of the instruction. */
export interface Asked {
  authority: Authority;
  scope: Scope | null;
  /** The target that the instruction names. */
  target: string | null;
  /** False if the instruction has `--no-tools`. */
  tools: boolean;
  /** `--allow-destructive`. */
  allow_destructive: boolean;
}

export interface Powers {
  /** Whether the tools of a target may be offered at all. */
  mayUse: (target: string) => boolean;
  /** Whether a target's writing tools may run although the model has read what others wrote. */
  mayWrite: (target: string) => boolean;
  destroy: boolean;
}

export interface AskedCall extends Omit<Going, "tool"> {
  tool: Tool;
  powers: Powers;
  /**
   * The name of another tool server whose tool descriptions are the only text of others that the model has read;
   * otherwise null.
   */
  beside: string | null;
  /** Whether all that its author wrote is the subject of a mail, which a link may have filled in. */
  subject_alone: boolean;
}

/** The part of a call that decides where it goes. It is plain data, so that it can be sent to a thread. */
export interface Going {
  tool: Pick<Tool, "target" | "name" | "read_only" | "foreign" | "places" | "numbered" | "site"> & {
    /** Whether people name its places by their titles. */
    titled: boolean;
    /** Whether a tool of others that may change something is called like one that only looks at a page. */
    looks: boolean;
    /** Empty for our own tools, and where nothing of others is in the run. */
    listed: Listed;
  };
  args: Record<string, unknown>;
  /** Whether the model has read anything written by others, apart from the descriptions by the target's own server. */
  tainted: boolean;
  /** Whether the owner may not have read what the tool of others would write. */
  unseen: boolean;
  /** Whether the author of the message is the owner in person. */
  by_owner: boolean;
  /** The words of the message's author for this run. */
  instruction: string;
  /** The instruction, the owner's own documents, and the addresses of the people whose run it is. */
  trusted_text: string;
  /** All words of the mail or call itself, by its author and by others. */
  said: string;
  /**
   * A page that the author may just have shared by mail, and the trusted text without its URL. The page may be read;
   * but whoever wants to be written to can get their page shared, so sharing alone names no destination for writing.
   */
  shared: { page: string; trusted_text: string } | null;
  /** What earlier calls of this run may have told a site, in their order. */
  told: Told[];
  /** What those calls told that came after the answer of another tool; null where only the tool itself has answered. */
  since: Told[] | null;
  /** The addresses that earlier calls of this run have written down, by call. */
  written: Writing[][];
  /** Words that are orders in a mail of the owner's, and that an instruction of the owner's own does not pass on as text. */
  orders: string[];
  /** The numbers by which a mail of the owner's consents to a call that waits. */
  numbers: string[];
  /** Domains of inboxes of this server, in lower case: no external tool may mail to them. */
  own_domains: string[];
  /**
   * What the run has read of others' words, without what the model may have had a tool say; empty for tools whose texts are
   * not compared with it.
   */
  material: string;
  /** What the results of the tool's own server have named in this run. */
  given: GivenIds;
  /** The country code of the account's telephones, if it is known. */
  calling_code: string | null;
  /** The places that built-in tools have found or made in this run. */
  places: Place[];
  /** The places that built-in tools have read in this run. */
  read_at: ReadPlace[];
  /** Whether what the model has read could be by anybody: a mail, a file, an earlier turn, an issue. */
  anybodys: boolean;
}

export const GUARD: Guard = { powersOf, objectionTo };

/**
 * The target of the tool that creates files. Every inbox that may use tools has it, whatever the instruction's target.
 */
export const FILES_TARGET = "files";

function powersOf({ authority, scope, target, tools, allow_destructive }: Asked): Powers {
  const trusted = authority === "owner" || authority === "listed";
  const targets = scope?.targets ?? null;
  const inScope = (name: string): boolean => targets === null || lists(targets, name);
  const mayUse = (name: string): boolean => {
    if (!trusted || !tools || targets?.length === 0) return false;
    if (name === FILES_TARGET) return true;
    return inScope(name) && (target === name || (target === null && name !== MEMORY_TARGET));
  };
  return {
    mayUse,
    mayWrite: (name) => mayUse(name) && (target === name || lists(scope?.autonomous ?? [], name)),
    destroy: trusted && allow_destructive,
  };
}

function lists(entries: string[], target: string): boolean {
  return entries.some((entry) => means(entry, target));
}

function objectionTo(asked: AskedCall): Objection | typeof WHERE | null {
  const { tool, powers, tainted } = asked;
  const { name, target } = tool;
  if (!powers.mayUse(target)) return { reason: `@${target} may not be used for this message.`, lacks: null };
  const destroy = mayDestroy(asked) && !powers.destroy;
  const writes = !tool.read_only && !powers.mayWrite(target);
  if (tainted && writes) {
    const reason = `${name} may change something, and the instruction does not begin with @${target}, nor may this inbox change things there without being named.`;
    return { reason: reason + besideIt(asked), lacks: { target: true, destroy, place: null } };
  }
  if (destroy) {
    const reason = `${name} may delete or overwrite something, which needs --allow-destructive in the instruction.`;
    return { reason, lacks: { target: false, destroy, place: null } };
  }
  if (writes && !fitsSubjectAlone(asked)) {
    const reason = `${name} may change something, and the instruction is the subject of a mail alone, which a link may have filled in: by such a one a tool may only add something.`;
    return { reason, lacks: { target: true, destroy: false, place: null } };
  }
  // Descriptions by the target's own server may still choose where its tools go.
  return !tainted && !tool.foreign ? null : WHERE;
}

/** In a run that others' words may steer, silence does not mean that nothing is deleted (MCP: destructiveHint). */
function mayDestroy({ tool, tainted }: AskedCall): boolean {
  return tool.destructive || (tainted && tool.may_destroy === true);
}

/**
 * Whether a call is no more than the subject of a mail may ask for. Programs send a mail without a text when their user
 * leaves a mailing list, with a subject that the list chose (RFC 2369 §3.2).
 */
function fitsSubjectAlone({ tool, subject_alone }: AskedCall): boolean {
  return !subject_alone || !tool.foreign || tool.adds === true;
}

export function goingOf({ tool, ...asked }: AskedCall): Going {
  const { target, name, read_only, foreign, places, numbered, site, titled, parameters } = tool;
  const { args, tainted, unseen, by_owner, instruction, trusted_text, said, shared, told } = asked;
  const { since, written, orders } = asked;
  const { numbers, own_domains, given, calling_code, read_at, anybodys } = asked;
  const listed = foreign && tainted ? listedIn(parameters) : { names: [], values: [] };
  return {
    tool: {
      target,
      name,
      read_only,
      foreign,
      places: places ?? [],
      numbered,
      site,
      titled: titled !== undefined,
      looks: foreign && !read_only && looksByName(tool),
      listed,
    },
    args,
    tainted,
    unseen,
    by_owner,
    instruction,
    trusted_text,
    said,
    shared,
    told,
    since,
    written,
    orders,
    numbers,
    own_domains,
    material: foreign && !read_only && tainted ? asked.material : "",
    given,
    calling_code,
    places: asked.places,
    read_at,
    anybodys,
  };
}

/**
 * Returns why a call must not go where it would; null if it may. Compares all arguments, and everything found in this
 * run, with all that the author wrote, so long texts are compared on a thread.
 */
export function objectionToPlaces(going: Going): Objection | null {
  return objectionToPlace(going) ?? objectionToSource(going) ?? objectionToText(going);
}

/** Returns the objection to a call whose destination cannot be determined. */
export function tooMuch(name: string): Objection {
  const reason = `${name} was called with more text, or more addresses, than can be looked through for where it would go. Ask for less at once.`;
  return { reason, lacks: null };
}

/**
 * Returns the objection to a call that could reveal to others what this run has read in a place that the instruction
 * does not name.
 */
function objectionToSource({ tool, anybodys, read_at, ...known }: Going): Objection | null {
  if (tool.read_only || !anybodys) return null;
  const unnamed = read_at.find(({ id, site }) => id === null || !isNamedPlace(id, { ...known, site }));
  if (unnamed === undefined) return null;
  if (unnamed.id === null) {
    const reason = `${tool.name} may show others what this run has found in repositories that stand neither in the instruction nor in a context of yours. Have it search in the one that is meant, and name that one.`;
    return { reason, lacks: { target: false, destroy: false, place: null, searched: true } };
  }
  const place = unnamed.id.slice(0, MAX_SHOWN_CHARS);
  const reason = `${tool.name} may show others what this run has read in ${place}, which stands neither in the instruction nor in a context of yours. Name it there if it is meant.`;
  return { reason, lacks: { target: false, destroy: false, place: null, source: place } };
}

/**
 * Returns the objection to a call with a text that acts by itself where it is put: text of others may have asked for
 * it.
 */
export function objectionToText(asked: Going): Objection | null {
  const { tool, args, tainted, trusted_text } = asked;
  if (!tool.foreign || tool.read_only || !tainted) return null;
  const acts = actingText(args, trusted_text);
  if (acts !== undefined) return { reason: `${tool.name} was to ${acts}`, lacks: null };
  const unfit = unfitAddress(args, textsOf(asked));
  return unfit === undefined ? null : objectionToWriting(tool.name, unfit);
}

function objectionToWriting(name: string, { address, why }: Unfit): Objection {
  const shown = address.slice(0, MAX_SHOWN_CHARS);
  const reason =
    why === "tells"
      ? `${name} was to write the address ${shown}, after so many of that site, in this call or earlier ones, that by which ones, how often and with what marks behind them it could be told what this run knows: a chat or a wiki may fetch each. Write it without that address.`
      : `${name} was to write the address ${shown}, which stands neither in the instruction nor in a context of yours, nor just so in what this run has read (of each site the first ${MAX_OF_SITE} addresses there count): a chat or a wiki may fetch it once it is shown, and so tell that site what this run knows. Write it without that address, or just as it stands there, in a sentence or at the end of a line, with a space behind it, or name it in the instruction if it is meant.`;
  return { reason, lacks: null };
}

export function objectionToPlace(asked: Going): Objection | null {
  return asked.tool.foreign ? objectionToAddress(asked) : objectionToOwn(asked);
}

/**
 * Returns the objection to an address in the arguments. It is unknown what an external tool does with one; built-in
 * tools contact only the service they are connected to.
 */
function objectionToAddress(asked: Going): Objection | null {
  const { tool, args, tainted } = asked;
  const { read_only, looks } = tool;
  const going = sitesOf(asked);
  if (going === TOO_MUCH) return tooMuch(tool.name);
  if (going.strange !== undefined) return objectionToStrange(asked, going.strange);
  const { sites, only_shared } = going;
  const [site] = read_only || looks ? sites : [only_shared];
  const order = read_only ? null : objectionToOrder(asked);
  if (order !== null) return order;
  if (!tainted || site === undefined) return null;
  const { said, told, since } = asked;
  const { listed } = tool;
  const argument = toldBeside(args, {
    sites,
    said,
    told,
    since,
    listed,
    tool: `${tool.target} ${tool.name}`,
  });
  return argument === undefined ? null : objectionToTold(asked, { site, argument });
}

/** Returns the objection to a call that would tell a site more than that its page is requested. */
function objectionToTold(
  { tool: { name, read_only, looks } }: Going,
  { site, argument }: { site: string; argument: string },
): Objection {
  const place = site.slice(0, MAX_SHOWN_CHARS);
  const reason = `${name} was to go to ${place} with more than that address (\`${argument.slice(0, MAX_SHOWN_CHARS)}\`): by what stands there that site could be told what this run knows. Beside the address, only words that stand just so in the message itself, values that the tool lists, switches and small numbers may go there, and few of these in all; nor may it be asked for again and again, and hardly at all once another tool has answered. Ask for the address alone, and before other tools.`;
  return { reason, lacks: read_only || looks ? null : { target: true, destroy: false, place } };
}

function objectionToStrange(asked: Going, strange: string): Objection {
  const { tool, own_domains } = asked;
  const { name } = tool;
  const place = strange.slice(0, MAX_SHOWN_CHARS);
  if (tool.foreign && !tool.read_only && isAtOwn(strange, own_domains)) {
    const reason = `${name} was to send to ${place}, an address of this server: what a tool sends there in your name would count as an order of yours. The answer to you is mailed without it.`;
    return { reason, lacks: null };
  }
  const titled = !tool.foreign && tool.titled;
  const reason = `${name} was to go to ${place}, ${unnamed(tool, place)}`;
  return { reason, lacks: { target: false, destroy: false, place, titled } };
}

/** Returns the end of a sentence that says that a place is not named, and how to name it. */
function unnamed(tool: Going["tool"], place: string): string {
  if (isPath(tool, place))
    return `which neither the instruction nor a context of yours names as a repository. Write "repository ${place}" there if it is meant.`;
  if (!tool.foreign && tool.titled)
    return "which the instruction does not name. Name it there by its id or its address, or by its title in quotation marks, if it is meant.";
  return "which stands neither in the instruction nor in a context of yours. Name it there if it is meant.";
}

/** Returns whether a place has the form `owner/name`, which looks like a pair of words. */
function isPath({ foreign }: Going["tool"], place: string): boolean {
  return !foreign && /^[^/#]+(?:\/[^/#]+)+$/.test(place);
}

function besideIt({ beside }: AskedCall): string {
  return beside === null
    ? ""
    : ` Another tool server, @${beside}, is in this run, and could have steered it.`;
}

const MAX_SHOWN_CHARS = 200;

function objectionToOwn(asked: Going): Objection | null {
  const strange = strangePlace(asked);
  return strange === undefined ? null : objectionToStrange(asked, strange);
}

/** Returns the place that a call of a built-in tool would write to, if nobody with authority named it for that. */
function strangePlace(asked: Going): string | undefined {
  const { tool, args, places, instruction, shared } = asked;
  if (tool.read_only) return undefined;
  const { trusted_text } = shared ?? asked;
  const strange = placesOf(tool, args).find(
    (id) => !isNamedPlace(id, { places, instruction, trusted_text, site: tool.site }),
  );
  const numbered = numberedIn(asked);
  if (numbered === undefined) return strange;
  return strange === undefined && isNamedIssue(numbered, { places, trusted_text })
    ? undefined
    : wholeName(numbered);
}

function numberedIn({ tool: { numbered }, args }: Going): Numbered | undefined {
  if (numbered === undefined) return undefined;
  const [place, number] = [args[numbered.place], args[numbered.number]];
  return typeof place === "string" && typeof number === "number" ? { place, number } : undefined;
}
