import {
  findAdministrator,
  NAME_ADMINISTRATOR,
  NO_ADMINISTRATOR,
} from "../resources/accounts/administrator.ts";
import { isBeforeFarewell } from "../resources/accounts/deletion.ts";
import type { App } from "../app.ts";
import { rememberReplyTag } from "../resources/conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { userById } from "../db/users.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { isKnownAddress } from "../resources/inboxes/allowlist.ts";
import { serviceKeys } from "../mail/writing/dkim-keys.ts";
import { bounceAddress } from "../mail/writing/own-ids.ts";
import type { AtSending, Carrying, WaitingMail } from "../mail/sending/outgoing.ts";
import { authorOf, readdress } from "../mail/writing/readdress.ts";
import { asciiDomain } from "../mail/sending/send-outcome.ts";
import { type Answerable, answerNow } from "../resources/messages/withheld.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { notProven } from "./forward.ts";
import { inboxWithKeys, replyAddress, threadOf } from "./reply.ts";
import { tellOwnerInstead } from "./tell-owner.ts";

/**
 * Returns what holds for a mail that waited: it may have to stay, to leave from another address, or to go to another
 * administrator.
 */
export async function atSending(app: App, mail: WaitingMail, { entrusted }: Carrying): Promise<AtSending> {
  if (entrusted === true) return toAdministrator(app, mail);
  if (await isBeforeFarewell(app.db, mail.user_id))
    return { why: "It is not sent, because the account has been deleted meanwhile." };
  if (mail.kind === "forward") return toOwnerAlone(app, mail);
  const [message] = mail.message_id === null ? [] : await answeredBy(app.db, { id: mail.message_id });
  if (!message) return {};
  const now = await answerNow(app.db, message);
  if (now.why !== null) return { why: now.why, ...(isOwed(mail, message) ? insteadOf(app, mail) : {}) };
  const why = whyNotTo(mail, message, now);
  if (why !== undefined) return { why };
  const from = authorOf(mail.raw);
  return isAt(from, now.inbox) ? {} : fromNewAddress(app, mail, { message, now, from });
}

/** Mail of others goes to nobody but the owner, who may have another address by now. */
async function toOwnerAlone(app: App, { user_id, envelope_to }: WaitingMail): Promise<AtSending> {
  const [owner] = await userById(app.db, { id: user_id });
  return owner?.email === envelope_to && owner.email_verified === 1 ? {} : { why: notProven(envelope_to) };
}

/**
 * Hands a letter that was entrusted to an administrator to another one, where the first one's account has been deleted
 * meanwhile.
 */
async function toAdministrator(app: App, { id: outgoing_id, user_id, raw }: WaitingMail): Promise<AtSending> {
  const [user] = await userById(app.db, { id: user_id });
  if (user?.deleted_at === null) return {};
  const administrator = await findAdministrator(app);
  if (!administrator)
    return { not_yet: `${NO_ADMINISTRATOR}, so nobody can be given it. ${NAME_ADMINISTRATOR}` };
  const { id, email } = administrator;
  const { domain } = app.config.smtp;
  const signer = authorOf(raw).endsWith(`@${domain}`) ? { domain, keys: await serviceKeys(app) } : null;
  const changed = { raw: await readdress(raw, { to: email }, signer), envelope_to: email, user_id: id };
  // The database counts the bytes of a mail for its account only when they change, so the bytes are emptied first.
  const alongside = async (tx: Db): Promise<void> => {
    await tx.updateTable("outgoing_mails").set({ raw: null }).where("id", "=", outgoing_id).execute();
  };
  return { changed, alongside };
}

/** Whether the mail tells a person with authority of a failure. If it cannot go, the owner is told instead. */
function isOwed({ kind }: WaitingMail, message: Answered): boolean {
  return kind === "notice" && hasAuthority(message);
}

function insteadOf(app: App, { message_id, user_id }: WaitingMail): AtSending {
  const instead = tellOwnerInstead(app, { id: message_id ?? "", user_id });
  return { alongside: async (tx) => void (await instead.queue(tx, null)) };
}

type Answered = Pick<
  MessageRow,
  "user_id" | "inbox_id" | "sender" | "authority" | "conversation_id" | "state"
>;

const answeredBy = prepared((db, key: { id: string }) =>
  db
    .selectFrom("messages")
    .select(["user_id", "inbox_id", "sender", "authority", "conversation_id", "state"])
    .where("id", "=", key.id),
);

/** Returns why a mail may not go to its recipient any more, though its message may be answered. */
function whyNotTo(
  { kind, envelope_to }: WaitingMail,
  { sender, state }: Answered,
  now: Answerable,
): string | undefined {
  if (kind === "notice" && !hasAuthority(now) && state !== "rejected")
    return "No answer is sent, because its sender is neither the owner nor listed any more, and strangers are not told of failures.";
  if (envelope_to === sender || (hasAuthority(now) && isKnownAddress(envelope_to, now))) return undefined;
  return "No answer is sent, because the address that the mail wanted it at (Reply-To) is not on the list of the inbox any more, nor the owner's.";
}

function isAt(from: string, inbox: InboxRow): boolean {
  return from === asciiDomain(addressOf(inbox)).toLowerCase();
}

async function fromNewAddress(
  app: App,
  { id, raw, envelope_from }: WaitingMail,
  { message, now, from }: { message: Answered; now: Answerable; from: string },
): Promise<AtSending> {
  const { inbox, keys } = await inboxWithKeys(app, now.inbox);
  if (isAt(from, inbox)) return {};
  const has_moved = from.slice(0, from.lastIndexOf("@")) === inbox.local_part;
  if (!hasAuthority(now) && !has_moved)
    return {
      why: "No answer is sent, because the inbox has been given another address meanwhile, which strangers are not told.",
    };
  const thread = threadOf(message);
  const addresses = {
    from: addressOf(inbox),
    "reply-to": thread === null ? addressOf(inbox) : replyAddress(app, thread, inbox),
  };
  const changed = {
    raw: await readdress(raw, addresses, { domain: inbox.domain, keys }),
    envelope_from: envelope_from === "" ? "" : bounceAddress(app, id, inbox.domain),
  };
  const alongside = async (tx: Db): Promise<void> => {
    if (thread !== null) await rememberReplyTag(app, tx, thread, inbox);
  };
  return { changed, alongside };
}
