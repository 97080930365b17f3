import { isIP } from "node:net";
import type { DNSResolver } from "mailauth";
import type { Resolver } from "../../net/dns.ts";
import { checkArc } from "./arc.ts";
import { type AuthResults, findingsOf } from "./auth-results.ts";
import { relayAt, resultsOfRelay } from "./front-relay.ts";
import type { MailHeaders } from "./headers.ts";
import { domainOf, inSameHands, isSameDomain } from "../../net/domain-owner.ts";
import { wasPassedOn } from "./passed-on.ts";
import { type SignatureCheck, verifySignatures } from "./signatures.ts";
import type { SignedForm } from "./signed-form.ts";
import { waitLimit } from "../../lib/wait-limit.ts";

export interface Envelope {
  raw: Uint8Array;
  headers: MailHeaders;
  /** The one author, as `fromMailbox` returns it. */
  from: { address: string };
  remote_address: string;
  helo: string;
  /** Empty for the null reverse-path. */
  mail_from: string;
  /** The name of this server. */
  hostname: string;
  resolver: Resolver;
  /** `network=authserv-id` of relays that receive mail for us and whose results the operator trusts. */
  trusted_relays?: string[];
  /** Domains whose ARC seals are believed. */
  arc_sealers?: string[];
}

export interface Identity {
  /** True only when the domain of the From address vouches for this mail. */
  authenticated: boolean;
  /** Results in the words of RFC 8601; `aligned` says that what passed belongs to the From domain. */
  auth: {
    spf: string;
    dkim: string;
    dmarc: string;
    aligned: boolean;
    /** Who determined this, if not this server: `relay:mx.front.example`, `arc:forwarder.example`. */
    via?: string;
  };
  /** The domain asks that its unauthenticated mail be refused: 550 5.7.26. */
  dmarc_reject: boolean;
  /** It came straight from the author's own server: the envelope names the author, SPF proves it, and it had been in no mailbox. */
  direct: boolean;
  /** It would have been direct if the domain had a DMARC record. */
  lacks_dmarc?: true;
  /** What each signature that vouches for the From domain covers. */
  signed: SignedForm[];
  /** The DNS did not answer, so that a later attempt may be authenticated. */
  problem?: "temporary";
  /** What the verifier of signatures threw, for the log. */
  verifier_fault?: string;
}

const MAX_WAIT_MS = 20_000;
const MAX_SPF_MS = 10_000;

/**
 * Decides whether the From domain vouches for the mail: by a DMARC pass, or by a DKIM pass of exactly that domain where
 * no DMARC record is published: without one nothing permits a signature of a parent domain or subdomain to count. What
 * the mail says about itself (Authentication-Results, ARC) is read only if `trusted_relays` or `arc_sealers` names who
 * wrote it.
 */
export async function authenticateSender(mail: Envelope, max_wait_ms = MAX_WAIT_MS): Promise<Identity> {
  const stop = new AbortController();
  const timedOut = Promise.withResolvers<Identity>();
  const timer = waitLimit(max_wait_ms, () => {
    stop.abort();
    timedOut.resolve(UNANSWERED);
  });
  const judged = judge(mail, stop.signal);
  try {
    return await Promise.race([judged, timedOut.promise]);
  } finally {
    timer.clear();
  }
}

const UNANSWERED: Identity = {
  authenticated: false,
  auth: { spf: "temperror", dkim: "temperror", dmarc: "temperror", aligned: false },
  dmarc_reject: false,
  direct: false,
  signed: [],
  problem: "temporary",
};

/**
 * The result of one method, the domains of the From domain's owner that passed, and those that could not be checked
 * because the DNS did not answer.
 */
export interface Check {
  result: string;
  aligned: string[];
  undecided: string[];
}

async function judge(mail: Envelope, signal: AbortSignal): Promise<Identity> {
  const relay = relayAt(mail.remote_address, mail.trusted_relays ?? []);
  const [signatures, sender] = await Promise.all([
    verifySignatures(mail, signal),
    relay === undefined ? checkSender(mail) : NO_SENDER,
  ]);
  const seen = relay === undefined ? { dkim: signatures, sender } : seenByRelay(mail, relay);
  const { mayVouch, ...identity } = await weigh(mail, seen);
  const { verifier_fault } = signatures;
  const signed = formsOf(signatures, mayVouch);
  const fault = verifier_fault === undefined ? {} : { verifier_fault };
  const own = { ...identity, ...wayOf(mail, identity, seen.sender), signed, ...fault };
  if (relay !== undefined) own.auth.via = `relay:${relay}`;
  const sealers = mail.arc_sealers ?? [];
  const vouched =
    own.authenticated || sealers.length === 0 ? undefined : await judgeSealed(mail, sealers, signal);
  if (vouched === "undecided") return { ...own, dmarc_reject: false, problem: "temporary" };
  return vouched ? { ...vouched, auth: { ...own.auth, aligned: true, via: vouched.auth.via } } : own;
}

/** Returns what those signatures cover that prove the author by themselves. */
function formsOf({ signed }: SignatureCheck, mayVouch: (domain: string) => boolean): SignedForm[] {
  return signed.filter(({ domain }) => mayVouch(domain)).map(({ form }) => form);
}

/** Results of DKIM and SPF; `sender.sender` is the address that SPF is about. */
interface Seen {
  dkim: Check;
  sender: Check & { sender: string };
}

interface Weighed extends Omit<Identity, "direct" | "lacks_dmarc" | "signed"> {
  /** Returns whether a signature of this domain, owned by the From domain's owner, counts as the From domain's own. */
  mayVouch: (domain: string) => boolean;
}

/** Evaluates DMARC (RFC 9989) with the results of DKIM and SPF. */
async function weigh(mail: Envelope, { dkim, sender }: Seen): Promise<Weighed> {
  // Loaded by the first mail that needs it: it would take a third of the time and a fifth of the memory of a start.
  const { dmarc } = await import("mailauth");
  // Alignment is checked here before DMARC's own: a tree walk would align the tenants of a shared suffix.
  const found = await dmarc({
    headerFrom: mail.from.address,
    fromFields: mail.headers.all("from").length,
    dkimDomains: dkim.aligned.map((domain) => ({ domain })),
    spfDomains: sender.aligned,
    resolver: mail.resolver as DNSResolver,
    strict: true,
  });
  // A missing verdict is a fail.
  const verdict = found ? found.status.result : "fail";
  const from = domainOf(mail.from.address);
  // A key below the domain signs whatever its holder likes, so only a record can let it speak for the domain: one that does
  // not ask for strict alignment (RFC 9989 §4.10.1).
  const exact = verdict === "none" || (found !== false && (found.alignment?.dkim.strict ?? false));
  const mayVouch = (domain: string): boolean => !exact || isSameDomain(domain, from);
  return { ...conclude({ dkim, sender, verdict, mayVouch, policy: found && found.policy }), mayVouch };
}

/**
 * Returns whether the author's own server sent the mail: the envelope names the author, and the server may send for
 * that domain.
 */
function wayOf(
  mail: Envelope,
  { auth }: Pick<Identity, "auth">,
  seen: Seen["sender"],
): Pick<Identity, "direct" | "lacks_dmarc"> {
  const named = namesAuthor(mail, seen) && !wasPassedOn(mail.headers, mail.from.address);
  const direct = named && provesAuthor(auth, seen);
  return named && auth.dmarc === "none" ? { direct, lacks_dmarc: true } : { direct };
}

function namesAuthor({ from }: Envelope, { result, sender }: Seen["sender"]): boolean {
  return result === "pass" && sender.toLowerCase() === from.address;
}

/**
 * Returns whether the sending server proves the author. A signature alone does not, because others may have brought it
 * there (RFC 6376 §8.6).
 */
function provesAuthor({ dmarc }: Identity["auth"], { aligned }: Seen["sender"]): boolean {
  return dmarc === "pass" && aligned.length > 0;
}

/**
 * Returns what a relay of ours saw. The client address here is only the relay's, so its results replace those of this
 * server.
 */
function seenByRelay(mail: Envelope, authserv_id: string): Seen {
  return asSeen(mail, resultsOfRelay(mail.headers, authserv_id));
}

function asSeen({ from }: Envelope, results: AuthResults[]): Seen {
  const { dkim, spf } = findingsOf(results, domainOf(from.address));
  // Nothing is undecided: asking again would not change what the relay wrote.
  return { dkim: { ...dkim, undecided: [] }, sender: { ...spf, undecided: [] } };
}

type Sealed = Identity & { auth: { via: string } };

/**
 * Returns the identity that a trusted server on the way saw and sealed (ARC); undefined if none did, and `undecided`
 * while the DNS does not answer.
 */
async function judgeSealed(
  mail: Envelope,
  sealers: string[],
  signal: AbortSignal,
): Promise<Sealed | "undecided" | undefined> {
  const arc = await checkArc(mail, sealers, signal);
  if (arc === "undecided") return arc;
  let found: Sealed | undefined;
  for (const { sealer, results } of arc?.trusted ?? []) {
    const seen = asSeen(mail, [results]);
    const { authenticated, auth } = await weigh(mail, seen);
    if (!authenticated) continue;
    const identity = {
      authenticated,
      dmarc_reject: false,
      direct: false,
      auth: { ...auth, via: `arc:${sealer}` },
    };
    // If a signature no longer fits, nobody can tell what it covered: the seal may cover what others had added.
    if (namesAuthor(mail, seen.sender) && provesAuthor(auth, seen.sender))
      return { ...identity, signed: arc?.signed ?? [] };
    found ??= { ...identity, signed: [] };
  }
  return found;
}

function conclude(seen: {
  dkim: Check;
  sender: Check;
  verdict: string;
  mayVouch: Weighed["mayVouch"];
  policy: string | false;
}): Omit<Weighed, "mayVouch"> {
  const { dkim, sender, verdict, mayVouch } = seen;
  const unpublished = verdict === "none";
  // Without a DMARC record, SPF alone proves only an address that many senders may share.
  const authenticated = verdict === "pass" || (unpublished && dkim.aligned.some(mayVouch));
  const undecided =
    !authenticated &&
    (verdict === "temperror" ||
      dkim.undecided.some(mayVouch) ||
      (verdict === "fail" && sender.undecided.length > 0));
  const aligned = authenticated || (unpublished && sender.aligned.length > 0);
  return {
    authenticated,
    auth: { spf: sender.result, dkim: dkim.result, dmarc: verdict, aligned },
    dmarc_reject: verdict === "fail" && !undecided && seen.policy === "reject",
    ...(undecided && { problem: "temporary" as const }),
  };
}

/** Checks SPF (RFC 7208); for the null reverse-path the HELO name is checked (§2.4). */
async function checkSender(mail: Envelope): Promise<Seen["sender"]> {
  // A mail that did not come over SMTP may have no known client address.
  if (isIP(mail.remote_address) === 0) return NO_SENDER;
  const from = domainOf(mail.from.address);
  const { spf } = await import("mailauth");
  const { domain, status } = await spf({
    sender: mail.mail_from,
    ip: mail.remote_address,
    helo: mail.helo,
    mta: mail.hostname,
    resolver: mail.resolver as DNSResolver,
    strict: true,
    maxElapsedTime: MAX_SPF_MS,
  });
  const result: string = status.result;
  const ours = inSameHands(domain, from);
  return {
    result,
    sender: mail.mail_from,
    aligned: ours && result === "pass" ? [domain] : [],
    undecided: ours && result === "temperror" ? [domain] : [],
  };
}

const NO_SENDER = { result: "none", sender: "", aligned: [], undecided: [] };
