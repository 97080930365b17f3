import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { takeTurn } from "../db/rate-limits.ts";
import type { Delivery, Examined, Reception } from "./decide.ts";
import { type Client, notePutOffFor, wasPutOffFor } from "./put-off.ts";

const RULE = { limit: 20, window_seconds: 3_600 };
/** What is forged uses up nothing of what proven people may write to the operator. */
const PROVEN = "role-mail:proven";
const UNPROVEN = "role-mail:unproven";

const COME_LATER: Reception = {
  code: 451,
  enhanced: "4.7.1",
  text: "The operator has been written to often enough this hour; please try again later",
  limit: `${RULE.limit} mails to postmaster and abuse in an hour`,
};

/** What the sender of a mail to a role address hears while the operator takes no more of such; noted where it is for others too. */
export function refuseRole(
  app: App,
  delivery: Delivery,
  mail: Pick<Examined, "identity">,
): Reception | undefined {
  const share = shareOf(mail);
  if (app.limiter.peek(share, RULE).ok) return undefined;
  if (delivery.recipients.some(({ role }) => role === undefined)) notePutOffFor(app, share, delivery);
  return COME_LATER;
}

/** Counts a mail to role addresses, once, in the commit that queues its letters. */
export function countRole(app: App, tx: Db, mail: Pick<Examined, "identity">): void {
  takeTurn(app, tx, { key: shareOf(mail), rule: RULE });
}

/** What the sender hears at RCPT of a mail that was put off because of the operator, until there is a turn again. */
export function roleStillBusy(app: App, client: Client): Reception | undefined {
  const isBusy = (share: string) => wasPutOffFor(app, share, client) && !app.limiter.peek(share, RULE).ok;
  return isBusy(PROVEN) || isBusy(UNPROVEN) ? COME_LATER : undefined;
}

function shareOf({ identity }: Pick<Examined, "identity">): string {
  return identity.authenticated ? PROVEN : UNPROVEN;
}
