import { knownZone } from "../lib/written-moment.ts";
import type { App } from "../app.ts";
import type { InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { allText } from "../mail/reading/mail-text.ts";
import { checkedRules } from "../resources/inboxes/rules/check.ts";
import type { RuleBody } from "../resources/inboxes/rules/rule-shapes.ts";
import { type Actions, type Rule, rulesOf } from "../resources/inboxes/rules/rules.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import { isLost } from "../resources/messages/stored-bytes.ts";
import { readStoredMail } from "./input.ts";
import { answeredBefore, factsOf, gather, type Read, type Ruled } from "./rules.ts";

/** How many of the newest mails of an inbox are looked at. */
const MAILS = 100;

/** What rules would have had done with a mail that is here. */
interface Tried {
  message_id: string;
  subject: string | null;
  sender: string | null;
  created: number;
  rules: string[];
  becomes: "worked_on" | "skipped" | "kept" | "waits";
  /** What they would have given it together. */
  do: Actions;
  /** Questions that would be asked of the model, and were not now: the rules of these, and those below, are left open. */
  asks: string[];
}

/** Holds rules, those given or those of the inbox, against its newest mails whose content is still here. Nothing is changed or asked. */
export async function tryRules(
  app: App,
  user: UserRow,
  { inbox, rules: given }: { inbox: InboxRow; rules?: RuleBody[] | undefined },
): Promise<{ items: Tried[]; unread: number }> {
  const all = given === undefined ? rulesOf(inbox) : await checkedRules(app.db, user, given);
  const rules = all.filter(({ enabled }) => enabled);
  const items: Tried[] = [];
  let unread = 0;
  for (const message of await newestMails(app, inbox)) {
    const read = await readFacts(app, { message, timezone: knownZone(user.timezone), rules });
    if (read === undefined) unread += 1;
    else items.push(await tried(message, rules, read));
  }
  return { items, unread };
}

/** What is read of each. With all that is kept of them, the longest of mails and results would be read at once. */
const READ = [
  "id",
  "user_id",
  "retry_of",
  "authority",
  "auth",
  "raw_mail_id",
  "sender",
  "subject",
  "tags",
  "rules",
  "created",
] as const;
type Mail = Pick<MessageRow, (typeof READ)[number]>;

function newestMails(app: App, { id }: InboxRow): Promise<Mail[]> {
  return app.db
    .selectFrom("messages")
    .innerJoin("raw_mails", "raw_mails.id", "messages.raw_mail_id")
    .select(READ.map((name) => `messages.${name}` as const))
    .where("messages.inbox_id", "=", id)
    .where("messages.deleted_at", "is", null)
    .where("messages.retry_of", "is", null)
    .where("raw_mails.purged_at", "is", null)
    .where("raw_mails.lost_at", "is", null)
    .orderBy("messages.id", "desc")
    .limit(MAILS)
    .execute();
}

async function readFacts(
  app: App,
  { message, timezone, rules }: { message: Mail; timezone: string; rules: Rule[] },
): Promise<Read | undefined> {
  try {
    const { raw, headers, headers_as_came } = await readStoredMail(app, message);
    const outcome = await app.parser.parse(raw, {
      form: storedAuth(message).signed_form,
      ...sourceOf(message),
    });
    const text = outcome.ok ? allText(outcome.mail) : outcome.text;
    const files = outcome.ok ? outcome.mail.attachments : [];
    const input = { headers, headers_as_came, files, whole: () => ({ text, size: raw.byteLength }) };
    return await factsOf(app, { message, timezone, input }, rules);
  } catch (error) {
    // Deleted, or found missing, since the list was made.
    if (isLost(error)) return undefined;
    throw error;
  }
}

async function tried(message: Mail, rules: Rule[], { facts, as_came }: Read): Promise<Tried> {
  const { id: message_id, subject, sender, created } = message;
  const asks: string[] = [];
  const ruled = await gather(rules, {
    facts,
    as_came,
    answer: answeredBefore(message, (question) => asks.push(question)),
  });
  return {
    message_id,
    subject,
    sender,
    created,
    rules: ruled.names,
    becomes: outcomeOf(ruled),
    do: givenBy(ruled),
    asks,
  };
}

/** What counts of all that rules say about a mail: one that ends with them is only tagged and forwarded. */
function givenBy({ end, wait, do: acts }: Ruled): Actions {
  const { tags = [], forward_to, context_ids = [], options = {}, ...rest } = acts;
  return {
    ...(forward_to === undefined ? {} : { forward_to }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(end === null
      ? {
          ...rest,
          ...(context_ids.length === 0 ? {} : { context_ids }),
          ...(Object.keys(options).length === 0 ? {} : { options }),
          ...(wait === null ? {} : { wait: wait.for }),
        }
      : {}),
  };
}

function outcomeOf({ end, wait }: Pick<Ruled, "end" | "wait">): Tried["becomes"] {
  if (end !== null) return end.kind === "skip" ? "skipped" : "kept";
  return wait === null ? "worked_on" : "waits";
}
