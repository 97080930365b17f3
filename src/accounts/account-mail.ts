import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { prepareLetter, type QueueLetter } from "../mail/letters.ts";

const HOUR_SECONDS = 3_600;
/** More of these within an hour would hide the one that matters. */
const NOTICES_PER_HOUR = 10;

type Recipient = Pick<UserRow, "id" | "email">;

/** Why a code is sent: somebody asked for it, or chose a password for the address. */
export type CodeReason = "sign_in" | "password_chosen" | "password_exists";

export function prepareCodeLetter(
  app: App,
  user: Recipient,
  letter: { code: string; minutes: number; reason: CodeReason },
): Promise<QueueLetter> {
  const { code, minutes, reason } = letter;
  return prepareLetter(app, {
    user_id: user.id,
    to: user.email,
    subject: `${code} is your Mailwright code`,
    markdown: [
      `Your Mailwright code is **${code}**`,
      `It works once, within the next ${minutes} minutes. A newer code replaces it.`,
      ...CODE_WORDS[reason],
      "Mailwright never asks for this code anywhere but where you sign in: do not pass it on.",
    ].join("\n\n"),
  });
}

const CODE_WORDS: Record<CodeReason, string[]> = {
  sign_in: ["You did not ask for it? Then you can ignore this mail: without the code nobody gets in."],
  password_chosen: [
    "Somebody chose a password for this address. It starts to work when the code is entered where the password was chosen.",
    "That was not you? Then you can ignore this mail: without the code the password is forgotten in a few minutes.",
  ],
  password_exists: [
    "Somebody tried to sign up with this address, but it has an account with a password already. Nothing about it has changed: sign in with your password, or with this code.",
    "That was not you? Then you can ignore this mail: without the code nobody gets in.",
  ],
};

/** Undefined when the account has had enough of such mails for now. */
export async function prepareKeyLetter(
  app: App,
  user: Recipient,
  key: { prefix: string; last4: string; name: string | null },
): Promise<QueueLetter | undefined> {
  const named = key.name === null ? "" : ` (named "${key.name.replaceAll(/[^\p{L}\p{N} .,-]/gu, " ")}")`;
  return prepareNotice(app, user, {
    subject: "A new API key for your Mailwright account",
    words: [
      `A new API key was made for your account${named}. It begins with \`${key.prefix}\` and ends with \`${key.last4}\`.`,
      "That was not you? Revoke the key, sign out everywhere by choosing a new password, and tell the operator of your server.",
    ],
  });
}

/** Undefined when the account has had enough of such mails for now. */
export async function preparePasswordLetter(app: App, user: Recipient): Promise<QueueLetter | undefined> {
  return prepareNotice(app, user, {
    subject: "The password of your Mailwright account was set",
    words: [
      "Your account has a new password. Every other browser that was signed in has been signed out; API keys go on working.",
      "That was not you? Sign in with a code, choose another password, and look through your API keys.",
    ],
  });
}

async function prepareNotice(
  app: App,
  user: Recipient,
  notice: { subject: string; words: string[] },
): Promise<QueueLetter | undefined> {
  const rule = { limit: NOTICES_PER_HOUR, window_seconds: HOUR_SECONDS };
  if (!app.limiter.take(`account-notice:${user.id}`, rule).ok) return undefined;
  const { subject, words } = notice;
  return prepareLetter(app, { user_id: user.id, to: user.email, subject, markdown: words.join("\n\n") });
}
