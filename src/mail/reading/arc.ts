import type { ARCChainEntry, DKIMResult, DNSResolver } from "mailauth";
import { isNoRecord, type Resolver } from "../../net/dns.ts";
import { type AuthResults, readArcResults } from "./auth-results.ts";
import type { Envelope } from "./authenticate.ts";
import { isBearable, MAX_SIGNATURES, streamOf, tagValue } from "./signatures.ts";
import { formVerified, type SignedForm } from "./signed-form.ts";

/** The most ARC sets of one mail: every server on the way that seals adds one, and each takes a signature to check. */
const MAX_SETS = 10;
const SEALING_FIELDS = ["arc-seal", "arc-message-signature"];
const SET_FIELDS = [...SEALING_FIELDS, "arc-authentication-results"];

/** The results of one server on the way, and who sealed them. */
export interface SealedResults {
  sealer: string;
  results: AuthResults;
}

export interface ArcCheck {
  /** Results of trusted sealers, newest first, up to the first sealer that is not trusted. */
  trusted: SealedResults[];
  /** The form of the mail that is unchanged since the newest seal, by the message signature of its set. */
  signed: SignedForm[];
}

/**
 * Returns the sealed results of a mail whose whole chain is valid (RFC 8617 §5.2), as far as `sealers` vouch for them:
 * the last seal must be by one of them, and an earlier one counts only if its sealer is one of them too. Returns
 * `undecided` when the DNS did not answer for a key of one of them, so that a later attempt may find a valid chain.
 */
export async function checkArc(
  mail: Envelope,
  sealers: string[],
  signal: AbortSignal,
): Promise<ArcCheck | "undecided" | undefined> {
  if (!isWorthChecking(mail, sealers)) return undefined;
  const noted = notingUnanswered(mail.resolver);
  // A bug of the verifier must not put a stranger's mail off for ever: the chain then counts as invalid.
  const valid = await validChain({ ...mail, resolver: noted.resolver }, signal).catch(() => undefined);
  if (valid === "invalid_seal") {
    const keys = keysOf(mail, sealers);
    return noted.unanswered.some((name) => keys.has(name.toLowerCase())) ? "undecided" : undefined;
  }
  if (!valid) return undefined;
  const sets = valid.chain.toReversed().map(sealedResults);
  const end = sets.findIndex((set) => set === undefined || !sealers.includes(set.sealer));
  const trusted = sets.slice(0, end < 0 ? sets.length : end).filter((set) => set !== undefined);
  return { trusted, signed: valid.signed };
}

/** Returns a resolver that remembers the names for which the DNS did not answer. */
function notingUnanswered(resolver: Resolver): { resolver: Resolver; unanswered: string[] } {
  const unanswered: string[] = [];
  const noting: Resolver = async (name, ...rest) => {
    try {
      return await resolver(name, ...rest);
    } catch (error) {
      if (!isNoRecord(error)) unanswered.push(name);
      throw error;
    }
  };
  return { resolver: noting, unanswered };
}

/** Returns the names of the keys with which these sealers say they have sealed and signed. */
function keysOf({ headers }: Envelope, sealers: string[]): Set<string> {
  const theirs = headers.fields.filter(
    ({ name, value }) => SEALING_FIELDS.includes(name) && sealers.includes(tagValue(value, "d") ?? ""),
  );
  return new Set(theirs.map(({ value }) => `${tagValue(value, "s")}._domainkey.${tagValue(value, "d")}`));
}

/**
 * Returns the chain, with `invalid_seal` unless every seal and the newest signature are valid. Returns undefined when
 * that signature could not count anyway, because it does not cover the whole mail and its author.
 */
async function validChain(
  mail: Envelope,
  signal: AbortSignal,
): Promise<{ chain: ARCChainEntry[]; signed: SignedForm[] } | "invalid_seal" | undefined> {
  const { arc, dkimVerify } = await import("mailauth");
  const options = { resolver: mail.resolver as DNSResolver, strict: true };
  const seen = await dkimVerify(streamOf(mail, new Set(), signal), { ...options, sender: mail.mail_from });
  const { chain, lastEntry } = seen.arc ?? { chain: false };
  if (!chain || seen.fromFields !== 1) return undefined;
  const form = wholeForm(mail, chain, lastEntry?.messageSignature);
  if (form === undefined) return undefined;
  const { status } = await arc(seen.arc as Parameters<typeof arc>[0], options);
  return status.result === "pass" ? { chain, signed: [form] } : "invalid_seal";
}

/** Returns what the newest signature covers, valid or not; undefined if that is not the whole mail and its author. */
function wholeForm(
  mail: Envelope,
  chain: ARCChainEntry[],
  signature: DKIMResult | undefined,
): SignedForm | undefined {
  const field = mail.headers.fields.find(
    ({ name, value }) => name === "arc-message-signature" && tagValue(value, "i") === String(chain.length),
  );
  const form = signature && formVerified(mail, field, signature);
  // If only part of the body is signed, anybody may have added what follows it (RFC 6376 §8.2).
  if (signature?.canonBodyLengthLimited || !form?.fields.includes("from")) return undefined;
  // No key would make it fit a body that has changed since.
  return signature?.bodyHash === signature?.bodyHashExpecting ? form : undefined;
}

/**
 * Decides, before a byte of the body is hashed, whether the newest seal is by a trusted sealer, and the work is
 * bounded.
 */
function isWorthChecking(mail: Envelope, sealers: string[]): boolean {
  const { fields } = mail.headers;
  const seals = fields.filter(({ name }) => name === "arc-seal");
  if (seals.length === 0 || seals.length > MAX_SETS) return false;
  const newest = seals.find(({ value }) => tagValue(value, "i") === String(seals.length));
  if (!sealers.includes(tagValue(newest?.value ?? "", "d") ?? "")) return false;
  const signatures = fields.filter(({ name }) => name === "dkim-signature");
  const sets = fields.filter(({ name }) => SET_FIELDS.includes(name));
  const few = signatures.length <= MAX_SIGNATURES && sets.length <= MAX_SETS * SET_FIELDS.length;
  return few && isBearable(mail, [...signatures, ...sets]);
}

function sealedResults(set: ARCChainEntry): SealedResults | undefined {
  const field = Buffer.from(set["arc-authentication-results"]?.original ?? "").toString();
  const sealer = set["arc-seal"]?.parsed?.d?.value;
  const results = readArcResults(field.slice(field.indexOf(":") + 1).replaceAll(/\r?\n/g, " "));
  return results && typeof sealer === "string" ? { sealer: sealer.toLowerCase(), results } : undefined;
}
