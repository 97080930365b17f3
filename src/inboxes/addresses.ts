import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow } from "../db/schema.ts";
import { ADDRESS_TOKEN_ALPHABET, base32Token, equalBytes, randomToken } from "../lib/secrets.ts";

/** About 59 bits: the address itself is a secret. */
const TOKEN_CHARS = 12;
const MAX_PREFIX_CHARS = 24;
const BOUNCE_TOKEN_CHARS = 16;

/** RFC 2142 and RFC 5321 §4.5.1: never the local part of an inbox. */
const RESERVED = new Set([
  "postmaster",
  "abuse",
  "mailer-daemon",
  "hostmaster",
  "webmaster",
  "noreply",
  "no-reply",
  "b",
]);

export interface Address {
  local_part: string;
  domain: string;
  /** What stands after the first `+`, or null. */
  tag: string | null;
}

/** Mail addresses are compared without regard to case here, local part included. */
export function splitAddress(address: string): Address {
  const at = address.lastIndexOf("@");
  const local = address.slice(0, at).toLowerCase();
  const plus = local.indexOf("+");
  return {
    local_part: plus === -1 ? local : local.slice(0, plus),
    domain: address.slice(at + 1).toLowerCase(),
    tag: plus === -1 ? null : local.slice(plus + 1),
  };
}

/** `<prefix>-<token>`, or the token alone for a prefix that is empty or reserved. */
export function newLocalPart(prefix: string | null): string {
  const token = randomToken(TOKEN_CHARS, ADDRESS_TOKEN_ALPHABET);
  return prefix ? `${prefix}-${token}` : token;
}

/** The readable part of an address: `Q3 Reports & more` becomes `q3-reports-more`. */
export function prefixOf(label: string): string | null {
  const prefix = label
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, MAX_PREFIX_CHARS)
    .replace(/-+$/, "");
  return prefix === "" || RESERVED.has(prefix) ? null : prefix;
}

export function addressOf(inbox: Pick<InboxRow, "local_part" | "domain">): string {
  return `${inbox.local_part}@${inbox.domain}`;
}

/** The inbox that a recipient address names, in any case and with any `+tag`. */
export async function findInboxByAddress(db: Db, address: Address): Promise<InboxRow | undefined> {
  const [row] = await inboxByAddress(db, address);
  return row;
}

const inboxByAddress = prepared((db, address: Pick<Address, "local_part" | "domain">) =>
  db
    .selectFrom("inboxes")
    .selectAll()
    .where("local_part", "=", address.local_part)
    .where("domain", "=", address.domain),
);

/** Envelope sender of a reply, so that a bounce names the mail it is about (the idea of VERP). */
export function bounceAddress(app: App, outgoing_id: string, domain: string): string {
  return `b+${outgoing_id.replaceAll("-", "")}${bounceCode(app, outgoing_id)}@${domain}`;
}

/** The id of the outgoing mail that a bounce address was made for; undefined when we did not make it. */
export function outgoingOfBounce(app: App, address: Address): string | undefined {
  const form = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([a-z2-7]+)$/.exec(
    address.tag ?? "",
  );
  if (address.local_part !== "b" || !form) return undefined;
  const id = form.slice(1, 6).join("-");
  return equalBytes(form[6] ?? "", bounceCode(app, id)) ? id : undefined;
}

function bounceCode(app: App, outgoing_id: string): string {
  return base32Token(app.secrets.hmac("bounce", outgoing_id), BOUNCE_TOKEN_CHARS);
}
