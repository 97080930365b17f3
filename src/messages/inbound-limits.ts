import type { App } from "../app.ts";
import { planLimits } from "../billing/plans.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import type { Examined, Reception } from "./decide.ts";
import type { Standing } from "./standing.ts";

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

/**
 * Counts a mail against what its inboxes take (decision A): 451 and nothing counted when one of them takes no more
 * now, so that the sender's server comes again with all of it. A mail that has been here before counts nowhere: it is
 * not worked on, and whoever has one could use up by it what its author may send.
 */
export function countInbound(app: App, mail: Counted, standings: Standing[]): Reception | undefined {
  const counted = new Map(standings.filter(isNew).map((standing) => [standing.inbox.id, standing]));
  const buckets = [...counted.values()].flatMap((standing) => bucketsOf(app, standing, mail));
  const full = buckets.find(({ key, rule }) => !app.limiter.peek(key, rule).ok);
  if (full) return comeLater(full);
  for (const { key, rule } of buckets) app.limiter.take(key, rule);
  return undefined;
}

/** Who is refused for good must hear that, not "later". */
function isNew({ verdict, original }: Standing): boolean {
  return verdict.accepted && original === undefined;
}

function bucketsOf(app: App, standing: Standing, mail: Counted): Bucket[] {
  const { inbox, user } = standing;
  const { from_address } = mail;
  const plan = planLimits(app.config, user.plan);
  const { inbound_per_sender_hour, inbound_per_sender_day } = app.config.limits;
  const { whose, proof } = shareOf(standing, mail);
  return [
    ...hourAndDay(`inbound:${inbox.id}:${whose}`, `plans.${user.plan}.inbound_per`, {
      hour: plan.inbound_per_hour,
      day: plan.inbound_per_day,
    }),
    ...hourAndDay(`inbound:${inbox.id}:${proof}:${from_address}`, "limits.inbound_per_sender", {
      hour: inbound_per_sender_hour,
      day: inbound_per_sender_day,
    }),
  ];
}

/**
 * What others send, forge or send again must use up nothing of what the owner, or a sender who is proven, may send. A
 * machine's mail, left out or read, uses up nothing of it either: anybody who has a signed mail can put such a mark on it.
 */
function shareOf(
  { verdict, vouched, left_out, skipped }: Standing,
  { identity, kind }: Counted,
): { whose: string; proof: string } {
  if (!identity.authenticated) return { whose: "others", proof: "unproven" };
  if (!vouched || left_out || skipped) return { whose: "again", proof: "again" };
  if (kind.kind !== "person" && !identity.direct) return { whose: "machines", proof: "machines" };
  return { whose: verdict.authority === "owner" ? "owner" : "others", proof: "proven" };
}

type Counted = Pick<Examined, "from_address" | "identity" | "kind">;

interface Bucket {
  key: string;
  rule: RateRule;
  /** Its key in the configuration. */
  setting: string;
}

function hourAndDay(key: string, setting: string, { hour, day }: { hour: number; day: number }): Bucket[] {
  return [
    { key: `${key}:hour`, rule: { limit: hour, window_seconds: HOUR_SECONDS }, setting: `${setting}_hour` },
    { key: `${key}:day`, rule: { limit: day, window_seconds: DAY_SECONDS }, setting: `${setting}_day` },
  ];
}

function comeLater({ rule: { limit, window_seconds }, setting }: Bucket): Reception {
  const span = window_seconds === HOUR_SECONDS ? "an hour" : "a day";
  return {
    limit: setting,
    code: 451,
    enhanced: "4.7.1",
    text: setting.startsWith("limits.")
      ? `This address takes no more than ${limit} mails in ${span} from one sender; please try again later`
      : `This address takes no more than ${limit} mails in ${span}; please try again later`,
  };
}
