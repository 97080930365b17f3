import { domainToASCII } from "node:url";
import type { App } from "../app.ts";
import { freeFor } from "../billing/storage.ts";
import type { UserRow } from "../db/schema.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { notePutOff } from "../messages/decide.ts";
import { tellOfFull } from "../messages/full-inbox.ts";
import { type Coming, fullAnswer, needAtRcpt } from "../messages/mail-storage.ts";
import { findRecipient, type Reception, type Recipient } from "../messages/receive.ts";
import { refuseFullRole } from "../messages/role-mail.ts";

type Refusal = Pick<Reception, "code" | "enhanced" | "text">;

/** Who an address names here, or what its sender hears instead. */
export async function lookUp(app: App, address: string): Promise<Recipient | Refusal> {
  const recipient = await findRecipient(app, address);
  if (recipient) return recipient;
  app.metrics.count("mailwright_mails_refused_total", { reason: "unknown_recipient" });
  return (await isOwnDomain(app, splitAddress(address).domain)) ? UNKNOWN : NOT_OURS;
}

/**
 * What a sender hears when the account of its recipient has no room for a mail, as far as that is known before it has
 * come. Said of each recipient, because of a whole mail only one thing can be said. The owner is told, and sees it in the
 * activity once a day for each sender.
 */
export async function refuseFullAccount(
  app: App,
  { inbox, role, address }: Recipient,
  coming: Coming,
): Promise<Refusal | undefined> {
  if (role) return refuseFullAdministrator(app, role.administrator, coming);
  if (!inbox) return undefined;
  const { bytes, whose } = needAtRcpt(app, inbox, coming);
  if (freeFor(inbox.storage, whose) >= bytes) return undefined;
  const { limit, ...answer } = fullAnswer("this address", { ...inbox, whose });
  notePutOff(app, coming, { reason: "storage_full", limit });
  await tellOfFull(app, { ...inbox, address, whose }, { sender: coming.mail_from, size: coming.size });
  return answer;
}

async function refuseFullAdministrator(
  app: App,
  administrator: UserRow,
  coming: Coming,
): Promise<Refusal | undefined> {
  const full = await refuseFullRole(app, administrator, coming.size);
  if (!full) return undefined;
  const { limit, ...answer } = full;
  notePutOff(app, coming, { reason: "storage_full", limit });
  return answer;
}

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
