import type { App } from "../app.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { enclosed, MAX_ENCLOSED_BYTES, prepareLetter, type QueueLetter } from "../mail/writing/letters.ts";
import { asCode } from "../trust/shown/as-code.ts";
import type { Run } from "./close.ts";
import { readStoredMail } from "./input.ts";
import { warningStep } from "./steps.ts";

type Forwarded = Pick<Run, "message" | "inbox" | "owner_email" | "owner_verified" | "steps">;

/**
 * Prepares the letter that takes a whole mail to the owner of its inbox, as a rule asks; the closing transaction queues it. What
 * keeps it from being forwarded is added to the steps.
 */
export async function prepareForward(
  app: App,
  { message, inbox, owner_email, owner_verified, steps }: Forwarded,
  address: string | undefined,
): Promise<QueueLetter | undefined> {
  if (address === undefined) return undefined;
  const refuse = (why: string): undefined =>
    void steps.push({ ...warningStep(`It was not forwarded: ${why}`), to_strangers: "" });
  if (message.raw_mail_id === null) return refuse("it is no mail.");
  if (owner_verified !== 1 || owner_email !== address)
    return refuse(`${address} is not the proven address of this account any more. Set the rule anew.`);
  const { raw } = await readStoredMail(app, message);
  if (raw.byteLength > MAX_ENCLOSED_BYTES)
    return refuse("it is larger than 15 MB, which most mail providers refuse.");
  steps.push({ type: "context", name: "rule", output: `It was forwarded to ${address}.` });
  return prepareLetter(app, {
    user_id: message.user_id,
    to: address,
    subject: `Fwd: ${message.subject ?? ""}`,
    markdown: [
      `A rule of your inbox ${asCode(inbox.label)} (${asCode(addressOf(inbox))}) forwards this mail.`,
      `From: ${asCode(message.sender ?? "")}`,
      `Subject: ${asCode(message.subject ?? "")}`,
      "The whole mail is attached as message.eml.",
    ].join("\n\n"),
    attachments: [enclosed(Buffer.from(raw))],
  });
}
