/** The reason of a mail that is refused, or not answered, since nothing shows that it is from its sender. */
export const UNPROVEN = "sender_unauthenticated";

const LISTED =
  "Turn on “Work on newsletters and list mail” of the inbox (inbound_policy.process_bulk) if you want it read.";

const WORDS: Record<string, string> = {
  auto_reply: `It was left out, because a program answered by itself, such as an out-of-office note. ${LISTED}`,
  auto_submitted: "It was left out, because a program wrote it, and no person.",
  bounce: "It was left out, because it is a report about mail that could not be delivered.",
  bulk: `It was left out, because it was sent to many. ${LISTED}`,
  hop_limit: "It was left out, because it has gone round between machines too often.",
  mailing_list: `It was left out, because it came through a mailing list. ${LISTED}`,
  no_reply_sender: `It was left out, because its sender takes no answers. ${LISTED}`,
  own_address: "It was left out, because it says to be from an address of this server.",
  own_message_id: "It was left out, because this server wrote it.",
};

/** Why a mail was left out, by its reason, for whoever looks for it, with the setting that would have it worked on. */
export function leftOutWords(reason: string): string {
  return WORDS[reason] ?? reason;
}
