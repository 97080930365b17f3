import { leftOutWords } from "../../../reasons.ts";
import type { Story } from "../../api/shapes.ts";

type Facts = Pick<Story, "authority" | "auth" | "error" | "reason" | "source" | "status">;

const AUTHORITY: Record<string, string> = {
  owner: "That is you: your words are instructions.",
  listed: "On the inbox’s list: their words are instructions.",
  stranger:
    "The address is proven, but the words are only content: instructions come straight from you, or from somebody on the inbox’s list.",
  unauthenticated: "Nobody vouches for this address: its words are only content.",
};

/** The words for a mail that was not worked on, of which nothing was read as instruction or content. */
const NOT_TAKEN: Record<string, string> = {
  ...AUTHORITY,
  stranger: "The address is proven, but the mail was not worked on.",
  unauthenticated: "Nobody vouches for this address, and the mail was not worked on.",
};

/** The words for who the sender is, and so what the mail may do. */
export function senderWords({ authority, auth, source, status }: Facts): string {
  if (source !== "email" || status !== "rejected") return AUTHORITY[authority] ?? authority;
  if (auth === null)
    return "So says the other server: the mail was refused before anybody looked who wrote it.";
  return NOT_TAKEN[authority] ?? authority;
}

const LEFT_OUT = "skipped: ";

/** Whether a mail was taken and left out, and not refused. */
export function isLeftOut({ error }: { error?: string | null }): boolean {
  return error?.startsWith(LEFT_OUT) === true;
}

/** Why it came to nothing, as people say it; earlier versions wrote a bare code. */
export function errorWords({ error, reason }: Pick<Facts, "error" | "reason">): string | null {
  if (!isLeftOut({ error }) || error === null) return error;
  const words = error.slice(LEFT_OUT.length);
  return words === reason ? leftOutWords(reason) : words;
}
