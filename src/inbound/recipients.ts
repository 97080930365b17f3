import { refusalFor } from "../reasons.ts";
import { domainToASCII } from "node:url";
import type { App } from "../app.ts";
import { freeFor, type Storage } from "../resources/billing/storage.ts";
import { isOwnDomain } from "../resources/domains/domains.ts";
import { splitAddress, withoutQuotes } from "../lib/mail-address.ts";
import { notePutOff, putOffReason } from "./decide.ts";
import { tellOfFull, tellOfPaused } from "./full-inbox.ts";
import { stillBusy } from "./inbound-limits.ts";
import { type Coming, fullAnswer, needAtRcpt } from "./mail-storage.ts";
import { findRecipient, type Reception, type Recipient } from "./receive.ts";
import { refuseRoleForNow } from "./role-mail.ts";

type Refusal = Pick<Reception, "code" | "enhanced" | "text">;

/** Who an address names here, or what its sender hears instead. */
export async function lookUp(app: App, address: string): Promise<Recipient | Refusal> {
  const recipient = await findRecipient(app, address);
  if (recipient) return recipient;
  app.metrics.count("mailwright_mails_refused_total", { reason: "unknown_recipient" });
  return (await isOwnDomain(app, splitAddress(address).domain)) ? UNKNOWN : NOT_OURS;
}

/**
 * What a sender hears of a recipient that can take no mail of theirs now: because its account has no room, or because the
 * mail was put off before, for all of its recipients, and this is the one it was put off for. As far as that is known
 * before the mail has come; said of each recipient, because of a whole mail only one thing can be said.
 */
export async function refuseForNow(
  app: App,
  { inbox, role, address }: Recipient,
  coming: Coming,
): Promise<Refusal | undefined> {
  if (role) return putOff(app, coming, await refuseRoleForNow(app, role.administrator, coming));
  if (!inbox) return undefined;
  const paused = await refuseIfPaused(app, inbox, coming);
  if (paused) return paused;
  const full = await refuseFullAccount(app, { ...inbox, address }, coming);
  return putOff(app, coming, full ?? stillBusy(app, inbox, coming));
}

/** The owner sees it in the activity, once a day for each sender. */
async function refuseIfPaused(
  app: App,
  { row }: NonNullable<Recipient["inbox"]>,
  coming: Coming,
): Promise<Refusal | undefined> {
  if (row.paused !== "refuse") return undefined;
  notePutOff(app, coming, { reason: "inbox_paused" });
  await tellOfPaused(app, row, coming.mail_from);
  return refusalFor("inbox_paused");
}

function putOff(app: App, coming: Coming, refusal: Reception | undefined): Refusal | undefined {
  if (!refusal) return undefined;
  const { limit, ...answer } = refusal;
  notePutOff(app, coming, { reason: putOffReason(answer), limit });
  return answer;
}

/** The owner is told, and sees it in the activity once a day for each sender. */
async function refuseFullAccount(
  app: App,
  inbox: NonNullable<Recipient["inbox"]> & { address: string },
  coming: Coming,
): Promise<Reception | undefined> {
  if (hasRoomForAny(app, inbox.storage)) return undefined;
  const { bytes, whose } = needAtRcpt(app, inbox, coming);
  if (freeFor(inbox.storage, whose) >= bytes) return undefined;
  await tellOfFull(app, { ...inbox, whose }, { sender: coming.mail_from, size: coming.size });
  return fullAnswer("this address", { ...inbox, whose });
}

/** Whoever sends it, and however large it is. */
function hasRoomForAny({ config: { smtp } }: App, storage: Storage): boolean {
  return freeFor(storage, "strangers") >= smtp.max_message_bytes;
}

const UNKNOWN = refusalFor("unknown_recipient");
const NOT_OURS: Refusal = {
  code: 550,
  enhanced: "5.7.1",
  text: "This server takes mail for its own addresses only",
};

/**
 * An address of a command as it is compared everywhere else: its domain in A-labels (the library writes `xn--…` as what it
 * stands for; RFC 6531 §3.3 allows both), and without quotes that only its dots need.
 */
export function comparableAddress(given: string): string {
  const address = withoutQuotes(given);
  const at = address.lastIndexOf("@") + 1;
  return /[^\0-\x7f]/.test(address.slice(at))
    ? address.slice(0, at) + domainToASCII(address.slice(at))
    : address;
}
