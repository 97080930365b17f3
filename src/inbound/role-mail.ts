import { refusalFor } from "../reasons.ts";
import { asCode } from "../trust/shown/as-code.ts";
import { findAdministrator } from "../resources/accounts/administrator.ts";
import type { App } from "../app.ts";
import { tellFull } from "../resources/billing/notices.ts";
import { freeFor, storageOf } from "../resources/billing/storage.ts";
import type { UserRow } from "../db/schema.ts";
import { isOwnDomain } from "../resources/domains/domains.ts";
import { splitAddress } from "../lib/mail-address.ts";
import type { DomainReport } from "./domain-report.ts";
import { enclosed, MAX_ENCLOSED_BYTES, prepareLetter } from "../mail/writing/letters.ts";
import type { Coming } from "./mail-storage.ts";
import { notePutOffFor, wasPutOffFor } from "./put-off.ts";
import { refuseRole, roleStillBusy } from "./role-limits.ts";
import { type Delivery, dropMail, type Examined, type Reception, type Recipient } from "./decide.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

/** RFC 5321 §4.5.1 and RFC 2142: mail to these addresses reaches a person. */
const ROLES = new Set(["postmaster", "abuse"]);
const NO_ROOM = "role-mail:no-room";
/** Lines that the log gets of reports; limited, because anybody can write one. */
const REPORTS = { limit: 60, window_seconds: HOUR_SECONDS };
/** Factor by which a mail is longer once it is encoded as a file. */
const ENCODED = 1.4;

/**
 * Returns the administrator, if there is one and `address` is a role address of this server or of a domain of its
 * accounts.
 */
export async function findRole(app: App, address: string): Promise<UserRow | undefined> {
  // RFC 5321 §4.1.1.3: of all names only this one is valid without a domain.
  if (address.toLowerCase() === "postmaster") return findAdministrator(app);
  const { local_part, domain } = splitAddress(address);
  if (!ROLES.has(local_part)) return undefined;
  const is_ours = domain === app.config.smtp.hostname || (await isOwnDomain(app, domain));
  return is_ours ? findAdministrator(app) : undefined;
}

/**
 * Returns the recipients, with a letter to the administrator that holds the mail for each role address; `decideForAll`
 * queues it in its commit. If the mail cannot be taken, returns the answer instead.
 */
export async function prepareRoleMail(
  app: App,
  delivery: Delivery,
  mail: Examined,
): Promise<Recipient[] | Reception> {
  if (delivery.recipients.every(({ role }) => role === undefined)) return delivery.recipients;
  if (mail.report !== null) {
    noteReport(app, mail.report);
    return delivery.recipients;
  }
  if (isMachine(mail)) {
    dropMail(app, delivery, "role_machine");
    return delivery.recipients;
  }
  if (delivery.raw.byteLength > MAX_ENCLOSED_BYTES) return TOO_LARGE;
  const [administrator] = delivery.recipients.flatMap(({ role }) => role?.administrator ?? []);
  const full = administrator && (await refuseFullRole(app, administrator, delivery.raw.byteLength));
  const others = delivery.recipients.some(({ role }) => role === undefined);
  if (full) {
    if (others) notePutOffFor(app, NO_ROOM, delivery);
    return full;
  }
  const recipients = () =>
    Promise.all(delivery.recipients.map((recipient) => withLetter(app, delivery, mail, recipient)));
  // This is asked again in the commit: what is not written then is not counted.
  return refuseRole(app, delivery, mail) ?? recipients();
}

/**
 * Returns the reply at RCPT while the operator can take no mail. If the mail is for others too and was put off because
 * of the operator, this reply is for the role address alone, and the others get the mail.
 */
export async function refuseRoleForNow(
  app: App,
  administrator: UserRow,
  coming: Coming,
): Promise<Reception | undefined> {
  const size = coming.size === 0 && wasPutOffFor(app, NO_ROOM, coming) ? MAX_ENCLOSED_BYTES : coming.size;
  return (await refuseFullRole(app, administrator, size)) ?? roleStillBusy(app, coming);
}

/**
 * Returns the reply while the administrator's account has no room for a mail of `size` bytes (0 if unknown). Mail to a
 * role address gets only the room of strangers, whoever sends it.
 */
async function refuseFullRole(
  app: App,
  administrator: UserRow,
  size: number,
): Promise<Reception | undefined> {
  const storage = await storageOf(app, app.db, administrator);
  if (freeFor(storage, "strangers") >= size * ENCODED) return undefined;
  await tellFull(app, administrator, { what: "mail", bytes: size, whose: "strangers" });
  return { ...FULL, limit: `plans.${administrator.plan}.storage_mb` };
}

/** Logs what another provider reports about mail of ours. */
export function noteReport(app: App, report: DomainReport): void {
  if (!app.limiter.take("domain-reports", REPORTS).ok) return;
  app.log.info({ ...report }, `a ${report.report === "tls" ? "TLS" : "DMARC"} report came in`);
}

const TOO_LARGE = refusalFor("too_large", "Mail to postmaster and abuse may have 15 MB at most");
const FULL = refusalFor(
  "storage_full",
  "The operator's account has no room for the mail; the operator has been told, please try again later",
);

/**
 * Returns whether a machine sent the mail, except for a complaint, which needs a person. Nobody is told of other
 * reports and of automatic answers: two machines would write to each other for ever.
 */
function isMachine({ kind, complaint }: Pick<Examined, "kind" | "complaint">): boolean {
  if (complaint) return false;
  return kind.kind === "hard" || (kind.kind === "soft" && kind.reason === "auto_reply" && !kind.doubtful);
}

async function withLetter(
  app: App,
  { raw }: Delivery,
  mail: Examined,
  recipient: Recipient,
): Promise<Recipient> {
  const { role, address } = recipient;
  if (!role) return recipient;
  const proven = mail.identity.authenticated ? "proven" : "not proven: it may be forged";
  const letter = await prepareLetter(app, {
    user_id: role.administrator.id,
    to: role.administrator.email,
    subject: `Mail to ${address}`,
    entrusted: true,
    markdown: [
      `Somebody wrote to ${asCode(address)}, which reaches you as the administrator of this server.`,
      `From: ${asCode(mail.from_address)} (${proven})`,
      `Subject: ${asCode(mail.subject)}`,
      "The whole mail is attached as message.eml. Be careful with what is in it.",
    ].join("\n\n"),
    attachments: [enclosed(raw)],
  });
  return { ...recipient, role: { ...role, letter } };
}
