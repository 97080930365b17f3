import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import { takeTurn } from "../../db/rate-limits.ts";
import type { UserRow } from "../../db/schema.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { markOfMail } from "../../mail/writing/mark-of-mail.ts";
import type { KeyMarks } from "./key-marks.ts";
import { countUntold } from "./untold.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/**
 * How many notices of one kind are mailed in an hour: more would hide the one that matters, so one mail reports the
 * rest.
 */
const NOTICES_PER_HOUR = 10;

/**
 * Kinds of notices to the owner. They are mailed at once; what a key has changed that stays without it (`command`) is
 * told once an hour.
 */
export type NoticeKind = "key" | "export" | "password" | "command";

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
    // A subject is shown where mail is only listed, as in the activity of an inbox to which a mailbox is forwarded.
    subject: "Your Mailwright code",
    markdown: [
      `# ${code}`,
      `This is your Mailwright code. It works once, within the next ${minutes} minutes. A newer code replaces it.`,
      ...CODE_WORDS[reason],
      "Mailwright never asks for this code anywhere but where you sign in: do not pass it on.",
      markOfMail(),
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

/** Prepares the invitation to a new account; `by` is the address of the administrator who created it. */
export function prepareInvitation(app: App, user: Recipient, by: string): Promise<QueueLetter> {
  const page = `${app.base_url}/app/sign-in?email=${encodeURIComponent(user.email)}`;
  return prepareLetter(app, {
    user_id: user.id,
    to: user.email,
    subject: "You have an account on a Mailwright server",
    markdown: [
      `${asCode(by)} has made an account for you on a Mailwright server, which works through mail with an AI model and answers it.`,
      `To sign in, open <${page}> and ask for a code: it comes by mail to this address, and you need no password.`,
      "You do not know what this is about? Then ignore this mail: without a code that is mailed to you nobody gets in.",
    ].join("\n\n"),
  });
}

export function prepareResetLetter(app: App, user: Recipient): Promise<QueueLetter> {
  return prepareLetter(app, {
    user_id: user.id,
    to: user.email,
    subject: "Your Mailwright password was reset",
    markdown: [
      "An administrator of your server has taken the password of your Mailwright account away, and signed it out of every browser.",
      `Sign in with a code by mail at <${app.base_url}/app/sign-in>, and choose a new password under Settings if you want one.`,
      "Your API keys go on as before: revoke those that you do not know. You did not ask for this? Talk to whoever runs your server.",
    ].join("\n\n"),
  });
}

/** Prepares the notice about a new API key; `by` is the key that created it, null for a signed-in person. */
export async function prepareKeyLetter(
  app: App,
  user: Recipient,
  { key, by }: { key: KeyMarks; by: KeyMarks | null },
): Promise<QueueLetter> {
  const named = key.name === null ? "" : ` (named "${plainName(key.name)}")`;
  return prepareNotice(app, user, {
    kind: "key",
    subject: "A new API key for your Mailwright account",
    words: [
      `A new API key was made for your account${named}. It begins with \`${key.prefix}\` and ends with \`${key.last4}\`.`,
      ...(by === null ? [] : [`It was made with ${keyWords(by)}.`]),
      "That was not you? Revoke the key, sign out everywhere by choosing a new password, and tell the operator of your server.",
    ],
  });
}

/** Prepares the notice about an export requested with an API key. */
export async function prepareExportLetter(app: App, user: Recipient, by: KeyMarks): Promise<QueueLetter> {
  return prepareNotice(app, user, {
    kind: "export",
    subject: "Everything in your Mailwright account was downloaded",
    words: [
      `All messages, files and settings of your account were downloaded with ${keyWords(by)}.`,
      "That was not you? Somebody else has this key: make a new one, revoke this one, and tell the operator of your server.",
    ],
  });
}

/** Data of the last mail about an account, that it was deleted. `by` is as for a new key. */
export interface Farewell {
  email: string;
  /** The key that it was done with; null: somebody who had signed in. */
  by: KeyMarks | "operator" | null;
}

export async function prepareFarewell(
  app: App,
  user_id: string,
  { email, by }: Farewell,
): Promise<QueueLetter> {
  const [how, then] =
    by === "operator"
      ? [
          "by the operator of this server",
          "You did not expect that? Ask them soon: perhaps there is a backup.",
        ]
      : [
          by === null ? "by somebody who had signed in" : `with ${keyWords(by)}`,
          "That was not you? Tell the operator of your server soon: perhaps there is a backup.",
        ];
  return prepareLetter(app, {
    user_id,
    to: email,
    subject: "Your Mailwright account was deleted",
    markdown: [
      `The Mailwright account of this address was deleted ${how}. Its messages, files and settings are being erased, and its inboxes take no more mail.`,
      then,
    ].join("\n\n"),
  });
}

function keyWords({ name, prefix, last4 }: KeyMarks): string {
  const marks = `\`${prefix}…${last4}\``;
  return name === null ? `the API key ${marks}` : `the API key "${plainName(name)}" (${marks})`;
}

/** Returns a person's name as Markdown text: people choose their own, so nothing in it may become markup or a link. */
function plainName(name: string): string {
  return name.replaceAll(/[^\p{L}\p{N} .,-]/gu, " ");
}

export async function preparePasswordLetter(app: App, user: Recipient): Promise<QueueLetter> {
  return prepareNotice(app, user, {
    kind: "password",
    subject: "The password of your Mailwright account was set",
    words: [
      "Your account has a new password. Every other browser that was signed in has been signed out; API keys go on working.",
      "That was not you? Sign in with a code, choose another password, and look through your API keys.",
    ],
  });
}

/** Prepares a notice. Beyond the hourly limit it is only counted, for the mail that reports the rest. */
async function prepareNotice(
  app: App,
  user: Recipient,
  notice: { kind: Exclude<NoticeKind, "command">; subject: string; words: string[] },
): Promise<QueueLetter> {
  const { kind: about, subject, words } = notice;
  // Each kind has its own limit: many mails about keys must not hide the one about an export.
  const key = `account-notice:${about}:${user.id}`;
  const rule = { limit: NOTICES_PER_HOUR, window_seconds: HOUR_SECONDS };
  const letter = { user_id: user.id, to: user.email, subject, markdown: words.join("\n\n") };
  const queue = app.limiter.peek(key, rule).ok ? await prepareLetter(app, letter) : undefined;
  return async (tx) => {
    // Counted only in the transaction: an attempt that is refused before it must not use up the limit.
    if (queue && takeTurn(app, tx, { key, rule }).ok) await queue(tx);
    else await countUntold(app, tx, { user_id: user.id, about });
  };
}
