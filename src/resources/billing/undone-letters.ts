import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { jsonTexts } from "../../db/json.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { listed, MOST_LISTED } from "../../mail/writing/lists.ts";
import type { QueueLetter } from "../../mail/writing/letters.ts";
import { isLeft } from "../../db/tries.ts";
import { letterTo, type Told } from "./limit-letters.ts";

/** The letter about mails that were not worked on; undefined once each of them has been deleted, or is tried again. */
export async function undoneLetter(app: App, user: UserRow, told: Told): Promise<QueueLetter | undefined> {
  const { mails, count } = await mailsOf(app.db, told, ({ error }) => error ?? "");
  const [mail] = mails;
  if (mail === undefined) return undefined;
  const one = count === 1;
  const left_out = told.kind === "mail_left_out";
  const untold = one ? "Its sender was not told." : "Their senders were not told.";
  const why = left_out
    ? "Such mail gets no answer, as it may come from a machine that answers everything."
    : untold;
  return letterTo(app, user, {
    subject: one ? "A mail was taken, but not worked on" : "Mails were taken, but not worked on",
    words: [
      one
        ? `A mail ${mail.of} was taken by your Mailwright, but not worked on:`
        : `${count} mails were taken by your Mailwright, but not worked on:`,
      one ? mail.why : listOf(mails, count),
      `${why} Nothing was charged for ${one ? "it" : "them"}.`,
      `Your [activity](${app.base_url}/app/) lists ${one ? "it" : "every one of them"}, and says why. ${left_out ? "Have" : "Once the cause is mended, have"} what still matters tried again there.`,
    ],
  });
}

/** The letter about mails that a rule could not forward; undefined as that about mails not worked on is. */
export async function unforwardedLetter(
  app: App,
  user: UserRow,
  told: Told,
): Promise<QueueLetter | undefined> {
  const { mails, count } = await mailsOf(app.db, told, whyUnforwarded);
  const [mail] = mails;
  if (mail === undefined) return undefined;
  const one = count === 1;
  return letterTo(app, user, {
    subject: one ? "A mail was not forwarded to you" : "Mails were not forwarded to you",
    words: [
      one
        ? `A rule of yours forwards a mail ${mail.of}:`
        : `Rules of yours forward ${count} mails, which did not reach you:`,
      one ? mail.why : listOf(mails, count),
      `Whatever could not be forwarded is kept, also where a rule leaves it out. Your [activity](${app.base_url}/app/) lists every message, with its steps and its mail.`,
    ],
  });
}

/** Why a rule could not forward a mail; undefined once the cause has gone. */
function whyUnforwarded({ steps: stored }: MessageRow): string | undefined {
  const steps = storedJson<{ type: string; name?: string; output: string }[]>(stored, []);
  return steps.find(({ type, name }) => type === "warning" && name === "forward")?.output;
}

/** A mail as a letter names it. */
interface Named {
  /** "from … about …". */
  of: string;
  why: string;
}

/**
 * Returns what is left to be told of the mails that a letter is for: the first of them, and how many there are. A mail of which `whyOf`
 * says nothing is none.
 */
async function mailsOf(
  db: Db,
  { notices }: Told,
  whyOf: (message: MessageRow) => string | undefined,
): Promise<{ mails: Named[]; count: number }> {
  const ids = jsonTexts(JSON.stringify(notices.flatMap(({ message_id }) => message_id ?? [])));
  const left = db
    .selectFrom("messages")
    .where("messages.id", "in", (eb) => eb.selectFrom(ids.as("listed")).select("listed.value"))
    .where(isLeft);
  const first = await left.selectAll().orderBy("id").limit(MOST_LISTED).execute();
  const { count } = await left.select((eb) => eb.fn.countAll<number>().as("count")).executeTakeFirstOrThrow();
  const mails = first.flatMap((message) => {
    const why = whyOf(message);
    const of = `from ${asCode(message.sender ?? "")} about ${asCode(message.subject || "(no subject)")}`;
    return why === undefined ? [] : [{ of, why: asCode(why) }];
  });
  return { mails, count: mails.length + count - first.length };
}

function listOf(mails: Named[], count: number): string {
  return listed(
    mails.map(({ of, why }) => `One ${of}: ${why}`),
    count,
  );
}
