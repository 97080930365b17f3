import type { App } from "../app.ts";
import { planLimits } from "../billing/plans.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import { judgeSender } from "./policy.ts";
import type { Delivery, Examined, Reception, Recipient } from "./decide.ts";

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

/**
 * Counts a mail against what its inboxes take (decision A): 451 and nothing counted when one of them takes no more
 * now, so that the sender's server comes again with all of it.
 */
export function countInbound(app: App, delivery: Delivery, mail: Examined): Reception | undefined {
  const buckets = delivery.recipients.flatMap(({ inbox }) => (inbox ? bucketsOf(app, inbox, mail) : []));
  const full = buckets.find(({ key, rule }) => !app.limiter.peek(key, rule).ok);
  if (full) return comeLater(full.rule);
  for (const { key, rule } of buckets) app.limiter.take(key, rule);
  return undefined;
}

function bucketsOf(
  app: App,
  { row: inbox, user }: NonNullable<Recipient["inbox"]>,
  { from_address, identity: { authenticated } }: Examined,
): { key: string; rule: RateRule }[] {
  // Who is refused for good must hear that, not "later".
  if (!judgeSender(inbox, user, { from_address, authenticated }).accepted) return [];
  const plan = planLimits(app.config, user.plan);
  const { inbound_per_sender_hour, inbound_per_sender_day } = app.config.limits;
  // What others send, or forge, must use up nothing of the owner's.
  const whose = authenticated && from_address === user.email ? "owner" : "others";
  const sender = `${authenticated ? "proven" : "unproven"}:${from_address}`;
  return [
    ...hourAndDay(`inbound:${inbox.id}:${whose}`, plan.inbound_per_hour, plan.inbound_per_day),
    ...hourAndDay(`inbound:${inbox.id}:${sender}`, inbound_per_sender_hour, inbound_per_sender_day),
  ];
}

function hourAndDay(key: string, hour: number, day: number): { key: string; rule: RateRule }[] {
  return [
    { key: `${key}:hour`, rule: { limit: hour, window_seconds: HOUR_SECONDS } },
    { key: `${key}:day`, rule: { limit: day, window_seconds: DAY_SECONDS } },
  ];
}

function comeLater({ limit, window_seconds }: RateRule): Reception {
  const span = window_seconds === HOUR_SECONDS ? "an hour" : "a day";
  return {
    code: 451,
    enhanced: "4.7.1",
    text: `This address takes no more than ${limit} mails in ${span} from you or for it; please try again later`,
  };
}
