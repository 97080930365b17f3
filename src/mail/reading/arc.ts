import type { ARCChainEntry, DNSResolver } from "mailauth";
import { type AuthResults, readArcResults } from "./auth-results.ts";
import type { Envelope } from "./authenticate.ts";
import { isBearable, MAX_SIGNATURES, streamOf, tag } from "./signatures.ts";
import { formVerified, type SignedForm } from "./signed-form.ts";

/** Every server on the way that seals adds one; each takes a signature to check. */
const MAX_SETS = 10;
const SET_FIELDS = ["arc-seal", "arc-message-signature", "arc-authentication-results"];

/** What one server on the way found out, and the seal that it put on that. */
export interface SealedResults {
  sealer: string;
  results: AuthResults;
}

export interface ArcCheck {
  /** Newest first, and no further than the servers are among those named. */
  trusted: SealedResults[];
  /** What has not changed since the newest seal, by the message signature of its set. */
  signed: SignedForm[];
}

/**
 * The sealed results of a mail whose whole chain is valid (RFC 8617 §5.2), as far as `sealers` vouch for them: one of
 * them must have sealed last, and whoever sealed before is believed only if it is one of them as well.
 */
export async function checkArc(
  mail: Envelope,
  sealers: string[],
  signal: AbortSignal,
): Promise<ArcCheck | undefined> {
  // A bug of the verifier is no reason to put a stranger's mail off for ever: it vouches for nothing then.
  const valid = isWorthChecking(mail, sealers)
    ? await validChain(mail, signal).catch(() => undefined)
    : undefined;
  if (!valid) return undefined;
  const sets = valid.chain.toReversed().map(sealedResults);
  const end = sets.findIndex((set) => set === undefined || !sealers.includes(set.sealer));
  const trusted = sets.slice(0, end < 0 ? sets.length : end).filter((set) => set !== undefined);
  return { trusted, signed: valid.signed };
}

/** Undefined unless every seal is good, and the newest signature covers the whole mail and its author. */
async function validChain(
  mail: Envelope,
  signal: AbortSignal,
): Promise<{ chain: ARCChainEntry[]; signed: SignedForm[] } | undefined> {
  const { arc, dkimVerify } = await import("mailauth");
  const options = { resolver: mail.resolver as DNSResolver, strict: true };
  const seen = await dkimVerify(streamOf(mail, new Set(), signal), { ...options, sender: mail.mail_from });
  const { chain, lastEntry } = seen.arc ?? { chain: false };
  if (!chain || seen.fromFields !== 1) return undefined;
  const signature = lastEntry?.messageSignature;
  const field = mail.headers.fields.find(
    ({ name, value }) => name === "arc-message-signature" && tag(value, "i") === String(chain.length),
  );
  const form = signature && formVerified(mail, field, signature);
  // What follows a part of the body may have been added by anybody (RFC 6376 §8.2).
  if (signature?.canonBodyLengthLimited || !form?.fields.includes("from")) return undefined;
  const { status } = await arc(seen.arc as Parameters<typeof arc>[0], options);
  return status.result === "pass" ? { chain, signed: [form] } : undefined;
}

/** Before a byte of the body is hashed: whether the newest seal is of one of them, and the work is bounded. */
function isWorthChecking(mail: Envelope, sealers: string[]): boolean {
  const { fields } = mail.headers;
  const seals = fields.filter(({ name }) => name === "arc-seal");
  if (seals.length === 0 || seals.length > MAX_SETS) return false;
  const newest = seals.find(({ value }) => tag(value, "i") === String(seals.length));
  if (!sealers.includes(tag(newest?.value ?? "", "d") ?? "")) return false;
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
