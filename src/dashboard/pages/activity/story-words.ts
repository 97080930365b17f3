import type { Story } from "../../api/shapes.ts";

type Facts = Pick<Story, "authority" | "auth" | "error" | "reason" | "source" | "status">;

const AUTHORITY: Record<string, string> = {
  owner: "That is you: your words are instructions.",
  listed: "On the inbox’s list: their words are instructions.",
  stranger:
    "The address is proven, but the words are only content: instructions come straight from you, or from somebody on the inbox’s list.",
  unauthenticated: "Nobody vouches for this address: its words are only content.",
};

/** What is said of a mail that was not worked on: its words were neither instruction nor content. */
const NOT_TAKEN: Record<string, string> = {
  ...AUTHORITY,
  stranger: "The address is proven, but the mail was not worked on.",
  unauthenticated: "Nobody vouches for this address, and the mail was not worked on.",
};

const LISTED = "Turn on “Work on newsletters and list mail” of the inbox if you want it read.";
const LEFT_OUT: Record<string, string> = {
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

/** Whose words they are, and so what they may do. */
export function senderWords({ authority, auth, source, status }: Facts): string {
  if (source !== "email" || status !== "rejected") return AUTHORITY[authority] ?? authority;
  if (auth === null)
    return "So says the other server: the mail was refused before anybody looked who wrote it.";
  return NOT_TAKEN[authority] ?? authority;
}

/** Why it came to nothing; a bare code as people say it. */
export function errorWords({ error, reason }: Facts): string | null {
  return error === `skipped: ${reason}` ? (LEFT_OUT[reason ?? ""] ?? error) : error;
}
