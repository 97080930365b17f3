import type { App } from "../../app.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { prepareLetter } from "../../mail/writing/letters.ts";
import { addressOf } from "./addresses.ts";
import { cardFileName, vcardOf } from "./vcard.ts";

const CARD_TYPE = "text/vcard; charset=utf-8";

export interface Card {
  filename: string;
  content_type: string;
  bytes: Buffer;
}

/** The address of an inbox as a contact card. */
export function cardOf(inbox: InboxRow): Card {
  const card = vcardOf({ ...inbox, address: addressOf(inbox) });
  return { filename: cardFileName(inbox.label), content_type: CARD_TYPE, bytes: Buffer.from(card) };
}

/** Mails the contact card to the owner. */
export async function mailCard(
  app: App,
  user: UserRow,
  inbox: InboxRow,
): Promise<{ sent: true; to: string }> {
  const address = addressOf(inbox);
  const queue = await prepareLetter(app, {
    user_id: user.id,
    to: user.email,
    subject: `Contact card: ${inbox.label || address}`,
    markdown: `Open the attached card to add the address of this inbox to your contacts.\n\nThe address is \`${address}\`.`,
    attachments: [cardOf(inbox)],
  });
  await app.write(queue);
  return { sent: true, to: user.email };
}
