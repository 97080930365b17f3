import { domainToASCII } from "node:url";
import type { App } from "../app.ts";
import { tellFull } from "../billing/notices.ts";
import { isFull } from "../billing/storage.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { logRefusal, notePutOff } from "../messages/decide.ts";
import { findRecipient, type Reception, type Recipient } from "../messages/receive.ts";

type Refusal = Pick<Reception, "code" | "enhanced" | "text">;

/** Who an address names here, or what its sender hears instead. */
export async function lookUp(app: App, address: string): Promise<Recipient | Refusal> {
  const recipient = await findRecipient(app, address);
  if (recipient) return recipient;
  app.metrics.count("mailwright_mails_refused_total", { reason: "unknown_recipient" });
  return (await isOwnDomain(app, splitAddress(address).domain)) ? UNKNOWN : NOT_OURS;
}

/**
 * What the sender of a mail of `size` bytes, 0 if that is not known, hears when the account of its recipient has no room
 * for it. Said of each recipient, because of a whole mail only one thing can be said. The owner is told, and sees it in
 * the activity once a day for each sender.
 */
export async function refuseFullInbox(
  app: App,
  { inbox }: Recipient,
  { size, ...client }: { size: number; mail_from: string; remote_address: string },
): Promise<Refusal | undefined> {
  if (!inbox || !(await isFull(app, app.db, inbox.user, size))) return undefined;
  notePutOff(app, client, { reason: FULL.reason, limit: `plans.${inbox.user.plan}.storage_mb` });
  const { mail_from } = client;
  if (app.limiter.take(`full:${inbox.row.id}:${mail_from}`, SHOWN_RULE).ok)
    await app.write((tx) =>
      logRefusal(app, tx, { inbox: inbox.row, refusal: { ...FULL, sender: mail_from } }),
    );
  await tellFull(app, inbox.user, { what: "mail", bytes: size });
  const { code, enhanced, text } = FULL;
  return { code, enhanced, text };
}

const SHOWN_RULE = { limit: 1, window_seconds: 86_400 };
/** RFC 3463 §3.3: X.2.2 is a mailbox that is full. */
const FULL = {
  code: 452,
  enhanced: "4.2.2",
  reason: "storage_full",
  text: "The account of this address has no room for the mail; its owner has been told, please try again later",
} as const;
const UNKNOWN: Refusal = { code: 550, enhanced: "5.1.1", text: "There is no such address here" };
const NOT_OURS: Refusal = {
  code: 550,
  enhanced: "5.7.1",
  text: "This server takes mail for its own addresses only",
};

/** Everywhere else domains have A-labels; the library writes `xn--…` as what it stands for (RFC 6531 §3.3 allows both). */
export function withAsciiDomain(address: string): string {
  const at = address.lastIndexOf("@") + 1;
  return /[^\0-\x7f]/.test(address.slice(at))
    ? address.slice(0, at) + domainToASCII(address.slice(at))
    : address;
}
