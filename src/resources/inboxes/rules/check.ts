import type { Db } from "../../../db/database.ts";
import type { UserRow } from "../../../db/schema.ts";
import { invalid } from "../../../errors.ts";
import { normalTags } from "../../../lib/tags.ts";
import { oneLine } from "../../../lib/one-line.ts";
import { isLongerThan } from "../../../lib/text-length.ts";
import { checkedTimezone } from "../../accounts/profile.ts";
import { normalizeAllowlist } from "../allowlist.ts";
import { refuseForeignContexts, refuseNoModel } from "../references.ts";
import { asksStrangers, giftOf } from "./asks-strangers.ts";
import { comparable } from "./words.ts";
import type { RuleBody } from "./rule-shapes.ts";
import { type Actions, AUTHORITIES, type Condition, type Field, FILE_KINDS, type Rule } from "./rules.ts";

const MAX_NAME_CHARS = 80;
/** Words that all rules of an inbox together look for in texts: each is looked for in every mail. */
const MAX_TEXT_WORDS = 200;

type ConditionBody = RuleBody["when"][number];

/** Which members a condition needs, by its field, and which it may have. */
const MEMBERS: Record<Field, { needs: (keyof ConditionBody)[]; may?: (keyof ConditionBody)[] }> = {
  sender: { needs: ["is"] },
  tag: { needs: ["is"] },
  authority: { needs: ["is"] },
  files: { needs: ["is"] },
  subject: { needs: ["contains"] },
  text: { needs: ["contains"] },
  header: { needs: ["name"], may: ["contains"] },
  size: { needs: [], may: ["over_bytes", "under_bytes"] },
  time: { needs: [], may: ["days", "from", "to", "zone"] },
};

/** All that a condition may say of its field; members that nobody knows are named elsewhere. */
const VALUES = [...new Set(Object.values(MEMBERS).flatMap(({ needs, may = [] }) => needs.concat(may)))];

/** Returns rules as they are stored. Throws `validation_error` with the member at fault, and what it takes. */
export async function checkedRules(tx: Db, user: UserRow, rules: RuleBody[]): Promise<Rule[]> {
  const checked: Rule[] = [];
  for (const [index, rule] of rules.entries()) {
    const path = `body.rules.${index}`;
    const name = checkedName(rule.name, checked, path);
    const when = rule.when.map((condition, at) => checkedCondition(condition, `${path}.when.${at}`));
    const question = oneLine(rule.question ?? "") || null;
    const match = rule.match ?? "all";
    refuseGifts({ question, match, when, do: rule.do }, path);
    const acts = await checkedActions(tx, user, rule.do, { name, path: `${path}.do` });
    checked.push({ name, enabled: rule.enabled ?? true, match, when, question, do: acts });
  }
  refuseManyWords(checked);
  return checked;
}

function checkedName(given: string, before: Rule[], path: string): string {
  const name = oneLine(given);
  if (name === "" || isLongerThan(name, MAX_NAME_CHARS))
    throw invalid(`${path}.name`, "invalid_name", `A rule has a name of 1 to ${MAX_NAME_CHARS} characters.`);
  if (before.some((other) => comparable(other.name) === comparable(name)))
    throw invalid(`${path}.name`, "duplicate", `Two rules are called “${name}”.`);
  return name;
}

function checkedCondition(given: ConditionBody, path: string): Condition {
  const { field } = given;
  refuseOtherMembers(given, path);
  const condition: Condition = {
    field,
    is: given.is ?? [],
    contains: (given.contains ?? []).map(comparable),
    name: given.name?.toLowerCase() ?? "",
    over_bytes: given.over_bytes ?? null,
    under_bytes: given.under_bytes ?? null,
    days: [...new Set(given.days)],
    from: given.from === undefined ? "" : clockOf(given.from),
    to: given.to === undefined ? "" : clockOf(given.to),
    zone: given.zone === undefined ? "" : checkedTimezone(given.zone, `${path}.zone`),
    not: given.not ?? false,
  };
  if (condition.contains.includes(""))
    throw invalid(`${path}.contains`, "too_short", "A word to look for must not be blank.");
  return { ...condition, is: checkedValues(condition, `${path}.is`) };
}

/** A time of the day with two digits for its hour, by which times are compared. */
function clockOf(time: string): string {
  return time.padStart("00:00".length, "0");
}

function refuseOtherMembers(given: ConditionBody, path: string): void {
  const { needs, may = [] } = MEMBERS[given.field];
  const isGiven = (name: keyof ConditionBody) => {
    const value = given[name];
    return value !== undefined && !(Array.isArray(value) && value.length === 0);
  };
  const missing = needs.find((name) => !isGiven(name));
  if (missing !== undefined)
    throw invalid(`${path}.${missing}`, "missing", `A condition on ${given.field} needs \`${missing}\`.`);
  if (needs.length === 0 && !may.some(isGiven))
    throw invalid(
      path,
      "missing",
      `A condition on ${given.field} needs ${may.map((name) => `\`${name}\``).join(" or ")}.`,
    );
  const usual = new Set([...needs, ...may]);
  const other = VALUES.find((name) => !usual.has(name) && isGiven(name));
  if (other !== undefined)
    throw invalid(`${path}.${other}`, "not_for_field", `A condition on ${given.field} has no \`${other}\`.`);
}

function checkedValues({ field, is }: Condition, path: string): string[] {
  if (field === "sender") return normalizeAllowlist(is, path);
  if (field === "tag") return is.map((tag) => comparable(tag.replace(/^\+/, "")));
  const known: readonly string[] = field === "authority" ? AUTHORITIES : FILE_KINDS;
  const other = is.findIndex((value) => !known.includes(value));
  if (other !== -1) throw invalid(`${path}.${other}`, "unknown_value", `It is one of ${known.join(", ")}.`);
  return is;
}

async function checkedActions(
  tx: Db,
  user: UserRow,
  given: Actions,
  { name, path }: { name: string; path: string },
): Promise<Actions> {
  const { context_ids, connection_id, forward_to, wait } = given;
  const asked = Object.entries(given).filter(([, value]) => value !== undefined);
  if (asked.length === 0)
    throw invalid(
      path,
      "missing",
      "A rule does something: give it at least one member, such as `skip: true`.",
    );
  if (given.skip && given.keep)
    throw invalid(
      `${path}.keep`,
      "contradiction",
      "What is left out cannot be kept: give one of `skip` and `keep`.",
    );
  const gone = (what: string) =>
    `The rule “${name}” names a ${what} that is not there, or not any more. Choose another one in it, or take it out of the rule.`;
  const contexts = { path: `${path}.context_ids`, words: gone("context") };
  const connection = { path: `${path}.connection_id`, words: gone("model connection") };
  if (context_ids) await refuseForeignContexts(tx, user, context_ids, contexts);
  if (connection_id !== undefined) await refuseNoModel(tx, user, connection_id, connection);
  if (forward_to !== undefined) refuseUnproven(user, forward_to, `${path}.forward_to`);
  return {
    ...given,
    ...(forward_to === undefined ? {} : { forward_to: user.email }),
    ...(given.tags === undefined ? {} : { tags: normalTags(given.tags, `${path}.tags`) }),
    ...(wait === undefined ? {} : { wait: checkedWait(wait, `${path}.wait`) }),
    ...(given.instruction === undefined ? {} : { instruction: given.instruction.trim() }),
  };
}

type Wait = NonNullable<Actions["wait"]>;

function checkedWait(wait: Wait, path: string): Wait {
  if (wait.zone !== undefined) checkedTimezone(wait.zone, `${path}.zone`);
  return { ...wait, until: clockOf(wait.until) };
}

/** Whoever writes a mail has a say in what a model answers about it. */
function refuseGifts(rule: Pick<Rule, "question" | "match" | "when" | "do">, path: string): void {
  const gift = giftOf(rule.do);
  if (gift === undefined || !asksStrangers(rule)) return;
  throw invalid(
    `${path}.do.${gift}`,
    "decided_by_strangers",
    `A question is answered by what strangers write, so its answer cannot give \`${gift}\`. Add a condition on \`sender\`, or on \`authority\` that is owner or listed; or take the question away.`,
  );
}

/** Mail of others must not be sent to people who never asked for it. */
function refuseUnproven({ email, email_verified }: UserRow, address: string, path: string): void {
  if (email_verified === 1 && address.trim().toLowerCase() === email) return;
  throw invalid(
    path,
    "not_proven",
    email_verified === 1
      ? `Mail is forwarded to the address of your account alone, ${email}: it is the one that you have shown to be yours.`
      : "Mail is forwarded to the address of your account alone, once you have shown that it is yours: sign in by code.",
  );
}

function refuseManyWords(rules: Rule[]): void {
  const words = rules.flatMap(({ when }) => when).filter(({ field }) => field === "text");
  const count = words.reduce((sum, { contains }) => sum + contains.length, 0);
  if (count > MAX_TEXT_WORDS)
    throw invalid(
      "body.rules",
      "too_many",
      `All rules together look for at most ${MAX_TEXT_WORDS} words in texts; these look for ${count}.`,
    );
}
