import { asciiHost } from "../lib/web-address.ts";
import { refusalFor } from "../reasons.ts";
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

/** Returns the recipient that an address names here, or the reply to refuse it with. */
export async function recipientOrRefusal(app: App, address: string): Promise<Recipient | Refusal> {
  const recipient = await findRecipient(app, address);
  if (recipient) return recipient;
  app.metrics.count("mailwright_mails_refused_total", { reason: "unknown_recipient" });
  return (await isOwnDomain(app, splitAddress(address).domain)) ? UNKNOWN : NOT_OURS;
}

/**
 * Returns the refusal of a recipient that can take no mail from this sender now: its account has no room, or a mail for
 * several was put off before because of it. This is as much as is known before the mail has come. It is said per
 * recipient here, because a whole mail gets only one reply.
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

/** Refuses mail for a paused inbox. The owner sees it in the activity, once a day for each sender. */
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

/** Refuses mail for a full account. The owner is told, and sees it in the activity once a day for each sender. */
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

/** Returns whether there is room for any mail, whoever sends it and however large it is. */
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
 * Returns an address of an SMTP command in the form in which all addresses are compared: its domain in A-labels (the
 * library decodes `xn--…`; RFC 6531 §3.3 allows both), and without quotes that only its dots need.
 */
export function comparableAddress(given: string): string {
  const address = withoutQuotes(given);
  const at = address.lastIndexOf("@") + 1;
  return /[^\0-\x7f]/.test(address.slice(at)) ? address.slice(0, at) + asciiHost(address.slice(at)) : address;
}
