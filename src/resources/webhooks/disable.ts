import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { WebhookEndpointRow } from "../../db/schema.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";

/** Number of deliveries in a row that failed at every attempt after which the owner is warned. */
const WARN_AT = 3;

/** How a delivery ended that counts for its endpoint. */
export interface Ending {
  delivered: boolean;
  error: string | null;
}

/** What the owner has to be told. */
type News = "failing" | "disabled";

interface Verdict {
  consecutive_failures: number;
  news: News[];
}

export type Notices = Partial<Record<News, QueueLetter>>;

/** Returns what the ends of deliveries, in order, mean for an endpoint; `disable_after` of 0 never disables it. */
function judge(before: number, endings: Ending[], disable_after: number): Verdict {
  const verdict: Verdict = { consecutive_failures: before, news: [] };
  for (const { delivered } of endings) {
    verdict.consecutive_failures = delivered ? 0 : verdict.consecutive_failures + 1;
    if (delivered) verdict.news = [];
    else if (disable_after > 0 && verdict.consecutive_failures >= disable_after)
      return { ...verdict, news: [...verdict.news, "disabled"] };
    else if (verdict.consecutive_failures === WARN_AT) verdict.news = ["failing"];
  }
  return verdict;
}

/**
 * Prepares all mails that these endings may cause, before the transaction that counts them: some may not count then,
 * because the owner may switch the endpoint on meanwhile, which resets the count.
 */
export async function noticesFor(app: App, endpoint_id: string, endings: Ending[]): Promise<Notices> {
  const failed = endings.filter(({ delivered }) => !delivered);
  if (failed.length === 0) return {};
  const endpoint = await app.db
    .selectFrom("webhook_endpoints")
    .innerJoin("users", "users.id", "webhook_endpoints.user_id")
    .select(["url", "consecutive_failures", "users.id as user_id", "users.email as to"])
    .where("webhook_endpoints.id", "=", endpoint_id)
    .executeTakeFirst();
  if (!endpoint) return {};
  const { disable_after } = app.config.webhooks;
  const { user_id, to, consecutive_failures: before } = endpoint;
  const { host } = new URL(endpoint.url);
  const error = failed.at(-1)?.error ?? "";
  const notices: Notices = {};
  const most = before + failed.length;
  if (failed.length >= WARN_AT || (before < WARN_AT && most >= WARN_AT))
    notices.failing = await prepareLetter(app, { user_id, to, ...failingWords(host, error, disable_after) });
  if (disable_after > 0 && most >= disable_after)
    notices.disabled = await prepareLetter(app, { user_id, to, ...disabledWords(host, error) });
  return notices;
}

/**
 * Counts deliveries that ended, and switches an endpoint off that has failed too often. Returns whether it did; the
 * caller then fails what waits there.
 */
export async function countEndings(
  app: App,
  tx: Db,
  endpoint: WebhookEndpointRow,
  { endings, notices }: { endings: Ending[]; notices: Notices },
): Promise<boolean> {
  // Whoever switched it off meanwhile knows why.
  if (endpoint.enabled === 0) return false;
  const before = endpoint.consecutive_failures;
  const { consecutive_failures, news } = judge(before, endings, app.config.webhooks.disable_after);
  if (consecutive_failures === before && news.length === 0) return false;
  const disabled = news.includes("disabled");
  const error = endings.findLast(({ delivered }) => !delivered)?.error ?? "";
  const reason = `${consecutive_failures} deliveries in a row failed at every attempt, the last one with ${error}.`;
  await tx
    .updateTable("webhook_endpoints")
    .set({
      consecutive_failures,
      ...(disabled ? { enabled: 0, disabled_reason: reason, updated: app.now() } : {}),
    })
    .where("id", "=", endpoint.id)
    .execute();
  for (const one of news) await notices[one]?.(tx);
  return disabled;
}

function failingWords(host: string, error: string, disable_after: number) {
  const limit = `It is switched off after ${disable_after} such deliveries in a row.`;
  return {
    subject: `Your webhook at ${host} is failing`,
    markdown: [
      `The last ${WARN_AT} events for your webhook at **${host}** could not be delivered: every attempt failed, the last one with \`${error}\`.`,
      `Please look at the receiver.${disable_after > WARN_AT ? ` ${limit}` : ""}`,
      "The list of its deliveries shows what was answered. Once the receiver works again, failed deliveries can be replayed there.",
    ].join("\n\n"),
  };
}

function disabledWords(host: string, error: string) {
  return {
    subject: `Your webhook at ${host} was switched off`,
    markdown: [
      `Too many events in a row could not be delivered to your webhook at **${host}**: every attempt failed, the last one with \`${error}\`. So it was switched off.`,
      "New events are listed as failed deliveries meanwhile, so that nothing is lost. When the receiver works again, enable the webhook and replay them.",
    ].join("\n\n"),
  };
}
