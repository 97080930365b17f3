import type { App } from "../app.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { firstIdAt } from "../lib/first-id.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import { materialOf } from "../resources/messages/material.ts";
import { messageById } from "../resources/messages/messages.ts";
import { rulesFound } from "../resources/messages/rules-found.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import { isForgotten } from "../resources/messages/forgotten.ts";
import { tagsOf } from "../resources/messages/tags.ts";
import { type Over, overOf, scheduleById } from "../resources/schedules/view.ts";
import { readStoredMail, type RunInput } from "./input.ts";

/** Mails of one digest: more are counted, and not read. */
const MAX_MAILS = 100;
/** Characters of one mail: what it is about stands at its beginning. */
const MAX_MAIL_CHARS = 4_000;
/** Messages that are looked at to find those that fit. */
const MAX_LOOKED_AT = 2_000;

/** What came in since the last run of a schedule, as material. */
export interface Gathered {
  /** Empty where nothing came in. */
  text: string;
  count: number;
  warnings: string[];
}

/** Adds what came in since the last run to the material of a digest. */
export async function withGathered(
  app: App,
  { message, owner_timezone: timezone }: { message: MessageRow; owner_timezone: string },
  { input, signal }: { input: RunInput; signal: AbortSignal },
): Promise<RunInput> {
  const gathered = await gatherSince(app, message, { timezone, signal });
  if (gathered === undefined) return input;
  const content = [input.content, gathered.text].filter((text) => text.trim() !== "").join("\n\n");
  return {
    ...input,
    content,
    plain: input.plain && gathered.count === 0,
    warnings: [...input.warnings, ...gathered.warnings],
    gathered,
  };
}

/** Gathers what a run of a schedule is to read; undefined for a message of no schedule, and for a schedule without such material. */
async function gatherSince(
  app: App,
  message: MessageRow,
  { timezone, signal }: { timezone: string; signal: AbortSignal },
): Promise<Gathered | undefined> {
  if (message.schedule_id === null) return undefined;
  const [schedule] = await scheduleById(app.db, { id: message.schedule_id });
  const over = schedule && overOf(schedule);
  if (!schedule || !over) return undefined;
  const [last] = await lastDone(app.db, { schedule_id: schedule.id, before: message.id });
  const since = last?.id ?? firstIdAt(schedule.created);
  const { user_id } = message;
  const rows = await cameIn(app.db, { user_id, since, before: message.id, limit: MAX_LOOKED_AT });
  const fitting = rows.filter((row) => fits(row, over));
  const texts: string[] = [];
  for (const { id } of fitting.slice(0, MAX_MAILS)) {
    signal.throwIfAborted();
    const [row] = await messageById(app.db, { id });
    if (row) texts.push(await textOf(app, row, timezone));
  }
  const left_out = fitting.length - texts.length + (rows.length === MAX_LOOKED_AT ? 1 : 0);
  const warnings =
    left_out > 0
      ? [`Only the first ${texts.length} mails since the last run were read; there were more of them.`]
      : [];
  return { text: texts.join("\n\n---\n\n"), count: texts.length, warnings };
}

const lastDone = prepared((db, key: { schedule_id: string; before: string }) =>
  db
    .selectFrom("messages")
    .select("id")
    .where("schedule_id", "=", key.schedule_id)
    .where("id", "<", key.before)
    .where("state", "=", "done")
    .orderBy("id", "desc")
    .limit(1),
);

/** Results and steps, which may be long, are left where they are. */
const SHOWS_WHETHER_IT_FITS = ["id", "inbox_id", "state", "reason", "command", "tags", "rules"] as const;

const cameIn = prepared((db, key: { user_id: string; since: string; before: string; limit: number }) =>
  db
    .selectFrom("messages")
    .select(SHOWS_WHETHER_IT_FITS)
    .where("user_id", "=", key.user_id)
    .where("id", ">", key.since)
    .where("id", "<", key.before)
    .where("source", "=", "email")
    .where("schedule_id", "is", null)
    .where("retry_of", "is", null)
    .where("raw_mail_id", "is not", null)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .limit(key.limit),
);

function fits(
  row: Pick<MessageRow, (typeof SHOWS_WHETHER_IT_FITS)[number]>,
  { inbox_id, tag, rule }: Over,
): boolean {
  if (isForgotten(row)) return false;
  if (inbox_id !== null && row.inbox_id !== inbox_id) return false;
  if (tag !== null && !tagsOf(row).includes(tag)) return false;
  return rule === null || (rulesFound(row).matched ?? []).includes(rule);
}

/** All words of a mail, of its owner as well: in a digest they are material and no instruction. */
async function textOf(app: App, row: MessageRow, timezone: string): Promise<string> {
  const came = `Came in: ${writtenMoment(row.created, timezone)}`;
  try {
    const { raw, headers } = await readStoredMail(app, row);
    const outcome = await app.parser.parse(raw, { form: storedAuth(row).signed_form, ...sourceOf(row) });
    const text = materialOf({ ...row, authority: "stranger" }, outcome, { headers, timezone });
    const shown = text.length > MAX_MAIL_CHARS ? `${text.slice(0, MAX_MAIL_CHARS)} […]` : text;
    return `${came}\n${shown}`;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return `${came}\nFrom: ${row.sender ?? "unknown"}\nSubject: ${row.subject ?? ""}\n\n(Its text is no longer kept.)`;
  }
}
