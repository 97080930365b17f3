import type { App } from "../../app.ts";
import type { UserRow } from "../../db/schema.ts";
import { moneyWords } from "../../lib/money.ts";
import type { QueueLetter } from "../../mail/writing/letters.ts";
import { asText } from "../../trust/shown/as-code.ts";
import { type Budget, budgetName, limitOf, spentBy } from "./budgets.ts";
import { letterTo, type Told } from "./limit-letters.ts";

/** The letter about a budget of which most is used, or all; undefined once there is none. */
export async function budgetLetter(
  app: App,
  user: UserRow,
  { kind, budget }: Told,
): Promise<QueueLetter | undefined> {
  if (!budget) return undefined;
  const limit = await limitOf(app.db, user.id, budget);
  if (limit === null) return undefined;
  const { of, id, month } = budget;
  const spent = await spentBy(app.db, { user_id: user.id, inbox_id: id, connection_id: id, month });
  const { currency } = app.config.costs;
  const name = asText(await budgetName(app.db, user.id, budget));
  const sums = `**${moneyWords(spent[of], currency)} of ${moneyWords(limit, currency)}**`;
  const used_up = kind === "budget_used_up";
  return letterTo(app, user, {
    subject: used_up
      ? `A monthly budget of your Mailwright is used up`
      : `Most of a monthly budget of your Mailwright is used`,
    words: [
      `${sums} of the monthly budget of ${name} are used for ${month}. ${used_up ? USED_UP : LOW}`,
      `What would go beyond it is listed as \`limited\` in your [activity](${app.base_url}/app/), and is not worked on later by itself: have what still matters tried again there. Models that cost nothing here go on, and so does a fallback whose own budget has room.`,
      `The budget begins anew with the next month (UTC). You can change it [here](${pageOf(app, budget)}) at any time.`,
    ],
    most: "once a month",
  });
}

const USED_UP = "There was no room in it for what was asked for.";
const LOW = "Once it is used up, models that cost money are not asked any more.";

function pageOf({ base_url }: App, { of, id }: Pick<Budget, "of" | "id">): string {
  if (of === "account") return `${base_url}/app/settings`;
  return of === "inbox" ? `${base_url}/app/inboxes/${id}` : `${base_url}/app/connections/${id}`;
}
