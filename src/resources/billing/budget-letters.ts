import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { moneyWords } from "../../lib/money.ts";
import type { QueueLetter } from "../../mail/writing/letters.ts";
import { asText } from "../../trust/shown/as-code.ts";
import {
  type BudgetOf,
  budgetName,
  limitOf,
  monthAt,
  orOf,
  shareWords,
  SHORTER_ANSWERS,
  spendable,
  spentBy,
} from "./budgets.ts";
import { lateLetter, letterTo, type Told } from "./limit-letters.ts";

/** The letter about a budget of which most is used, or all; undefined once there is none, or another one. */
export async function budgetLetter(
  app: App,
  user: UserRow,
  { kind, budget }: Told,
): Promise<QueueLetter | undefined> {
  if (!budget) return undefined;
  const limit = await limitOf(app.db, user.id, budget);
  if (limit === null || limit !== budget.limit) return undefined;
  const { of, id, month, whose, amount } = budget;
  const spent = await spentBy(app.db, { user_id: user.id, inbox_id: id, connection_id: id, month });
  const money = (sum: number): string => moneyWords(sum, app.config.costs.currency);
  const name = asText(await budgetName(app.db, user.id, budget));
  const change = `change it [here](${pageOf(app, of, id)})`;
  const used = `**${money(spent[of])} of ${money(limit)}** of the monthly budget of ${name} are used for ${month}.`;
  const share = whose === "household" ? [] : [shareWords(money(spendable(budget, whose)))];
  const anew = `The budget begins anew with the next month (UTC). You can ${change} at any time.`;
  const about = { kind, whose, too_small: amount !== undefined };
  const cause =
    amount === undefined
      ? [`${used} ${[...share, kind === "budget_used_up" ? USED_UP : LOW].join(" ")}`]
      : [
          `A model was not asked, because one request may cost **${money(amount)}**, and the whole monthly budget of ${name} is **${money(limit)}**. ${[...share, "To wait for the next month does not help."].join(" ")}`,
          `You can ${orOf([change, "choose a model that costs less", ...(whose === "household" ? [SHORTER_ANSWERS] : [])])}.`,
        ];
  return letterTo(app, user, {
    subject: subjectOf(about),
    words: [
      ...cause,
      `What would go beyond it is listed under “Limit reached” in your [activity](${app.base_url}/app/), and is not worked on later by itself: have what still matters tried again there. Models that cost nothing here go on, and so does a fallback whose own budget has room. Of mail that is left undone for it from tomorrow on, you hear once a day.`,
      ...(amount === undefined ? [anew] : []),
    ],
    most: "for a budget of this size once a month",
  });
}

function subjectOf({ kind, whose, too_small }: { kind: Told["kind"]; whose: string; too_small: boolean }) {
  if (too_small) return "A monthly budget of your Mailwright is too small for a request";
  if (kind === "budget_low") return "Most of a monthly budget of your Mailwright is used";
  return whose === "household"
    ? "A monthly budget of your Mailwright is used up"
    : "Mail of strangers has used its share of a monthly budget of your Mailwright";
}

const USED_UP = "There was no room in it for what was asked for.";
const LOW = "Once it is used up, models that cost money are not asked any more.";

/** The letter about what budgets have left undone in a month; undefined where nothing of it is left. */
export async function undoneForBudgetLetter(
  app: App,
  user: UserRow,
  { since }: Told,
): Promise<QueueLetter | undefined> {
  const from = Date.parse(`${monthAt(since)}-01`) / 1_000;
  const why = await newestReason(app.db, { user_id: user.id, since: from });
  return lateLetter(app, user, {
    since: from,
    reason: "budget_used_up",
    cause: "a monthly budget had no room for what that may cost",
    now: `Of the newest it was said: ${asText(why.replace(/\.$/, ""))}`,
  });
}

async function newestReason(db: Db, { user_id, since }: { user_id: string; since: number }): Promise<string> {
  const newest = await db
    .selectFrom("messages")
    .select("error")
    .where("user_id", "=", user_id)
    .where("reason", "=", "budget_used_up")
    .where("created", ">=", since)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return newest?.error ?? "";
}

function pageOf({ base_url }: App, of: BudgetOf, id: string): string {
  if (of === "account") return `${base_url}/app/settings`;
  return of === "inbox" ? `${base_url}/app/inboxes/${id}` : `${base_url}/app/connections/${id}`;
}
