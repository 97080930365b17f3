import type { App } from "../app.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { sha256 } from "../lib/sha256.ts";
import { storedJson } from "../lib/stored-json.ts";
import { type Facts, fits, kindsOf, nextClock } from "../resources/inboxes/rules/match.ts";
import { asksStrangers, giftOf, withoutGifts } from "../resources/inboxes/rules/asks-strangers.ts";
import { type Actions, type Rule, storedRules } from "../resources/inboxes/rules/rules.ts";
import { type RulesFound, rulesFound, sumOfUsage, type Usage } from "../resources/messages/rules-found.ts";
import { comparable, soughtBy } from "../resources/inboxes/rules/words.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { type Failure, type Questions, questionsAbout, type Said } from "./ask-yes-or-no.ts";
import type { Command } from "./command.ts";
import type { RunInput } from "./input.ts";
import { mayWaitFor } from "./model-pause.ts";
import { type StepDraft, warningStep } from "./steps.ts";
import { workOnText } from "./text-work.ts";

/** What the rules of an inbox say about one message, put together. */
export interface Ruled {
  /** The names of those that are for it, in their order. */
  names: string[];
  do: Omit<Actions, "skip" | "keep" | "wait" | "stop">;
  /** By what is done, and by the name of an option, the rule that has the last word on it. */
  by: Record<string, string>;
  /** What has it wait, and the rule that does; null where none does. */
  wait: { rule: string; for: NonNullable<Actions["wait"]> } | null;
  /** Until when it waits, in unix seconds; null where it does not. */
  until: number | null;
  /** What ends it without a run, and the rule that does. */
  end: { kind: "skip" | "keep"; rule: string } | null;
  /** Whether the model has answered a question about it. */
  asked: boolean;
  /** What it has read and written for that; null where nothing is known of it. */
  usage: Usage | null;
  /** Why a question has no answer for the moment: the message is to be looked at again later. */
  again: Failure | null;
  steps: StepDraft[];
}

const NO_RULES: Ruled = {
  names: [],
  do: {},
  by: {},
  wait: null,
  until: null,
  end: null,
  asked: false,
  usage: null,
  again: null,
  steps: [],
};

interface Judged {
  message: MessageRow;
  inbox: InboxRow;
  timezone: string;
  input: Pick<RunInput, "headers" | "headers_as_came" | "whole"> & {
    files: { filename: string; content_type: string }[];
  };
}

/**
 * Returns what the rules of an inbox say about a message. A message that somebody has tried again, that a schedule made, or that
 * answers a request for consent, is neither left out nor has to wait: that is what was asked for.
 */
export async function judgeByRules(app: App, judged: Judged, signal: AbortSignal): Promise<Ruled> {
  const stored = storedRules(judged.inbox);
  if (stored === null) return untilMended(app, judged);
  const rules = stored.filter(({ enabled }) => enabled);
  if (rules.length === 0) return NO_RULES;
  const { message } = judged;
  const found = rulesFound(message);
  const { facts, as_came, text: material, steps } = await factsOf(app, judged, rules);
  using questions = questionsAbout(app, { ...judged, material }, signal);
  const ruled = await gather(rules, {
    facts,
    as_came,
    answer: (question) => answerTo(app, judged, { question, questions, found }),
  });
  if (ruled.again !== null) return ruled;
  ruled.usage = found.usage ?? null;
  ruled.steps.unshift(...steps);
  const asked_for = message.retry_of !== null || message.schedule_id !== null || message.approval_id !== null;
  const until = untilOf(ruled, { found, now: app.now(), facts });
  const settled = asked_for ? { ...ruled, end: null, until: null } : { ...ruled, until };
  if (settled.names.length > 0 || settled.asked) {
    const { as_material: _before, ...known } = found;
    const narrowed = settled.do.authority !== undefined && hasAuthority(message);
    const kept: RulesFound = {
      ...known,
      matched: settled.names,
      ...(narrowed ? { as_material: true } : {}),
    };
    await app.write((tx) => noteRules(tx, { id: message.id, rules: JSON.stringify(kept) }));
  }
  return settled;
}

/**
 * Returns what the rules say about a message that is run once more: none ends it or has it wait, and the model is asked no question
 * anew.
 */
export async function ruledAgain(app: App, judged: Judged): Promise<Ruled> {
  const rules = (storedRules(judged.inbox) ?? []).filter(({ enabled }) => enabled);
  if (rules.length === 0) return NO_RULES;
  const { facts, as_came, steps } = await factsOf(app, judged, rules);
  const ruled = await gather(rules, { facts, as_came, answer: answeredBefore(judged.message, () => {}) });
  return { ...ruled, end: null, until: null, steps: [...steps, ...ruled.steps] };
}

/** Answers the questions that the model has answered about a message before; `onOther` is told of any other. */
export function answeredBefore(
  message: Pick<MessageRow, "rules">,
  onOther: (question: string) => void,
): (question: string) => Promise<Said> {
  const known = rulesFound(message).answers ?? {};
  return async (question) => {
    const yes = known[questionKey(question)];
    if (yes !== undefined) return { yes, usage: null };
    onOther(question);
    return { problem: "the model was not asked it before, and is not asked now." };
  };
}

/** How long a message waits before the rules are read again. */
const LOOK_AGAIN_SECONDS = 600;

/** Has a message wait while the rules of its inbox are damaged: its owner may have wanted it left out. */
function untilMended(app: App, { message, inbox }: Judged): Ruled {
  app.log.error(
    { message_id: message.id, inbox_id: inbox.id },
    "a message waits, because the rules of its inbox cannot be read: the database is damaged there, and its owner has to set them anew",
  );
  return { ...NO_RULES, until: app.now() + LOOK_AGAIN_SECONDS };
}

/**
 * Puts together what rules say about a message; `answer` is asked their questions. A rule gives something only where it is for the
 * message with the fields that its signature covers, and with all that came: anybody on the way can add fields. It takes
 * something away where it is for either, so that nobody passes a rule by with a field more or less.
 */
export async function gather(
  rules: Rule[],
  { facts, as_came, answer }: Read & { answer: (question: string) => Promise<Answer> },
): Promise<Ruled> {
  const ruled: Ruled = { ...NO_RULES, names: [], do: {}, by: {}, steps: [] };
  for (const rule of rules) {
    const held = [facts, as_came].filter((read) => fits(rule, read));
    if (held.length === 0) continue;
    const counting = whatCounts(rule, { certain: held.length === 2, facts });
    if (Object.keys(counting.do).length === 0) continue;
    if (rule.question !== null) {
      const said = await answer(rule.question);
      if ("again" in said) return { ...ruled, again: said.again };
      if ("yes" in said) ruled.asked = true;
      if ("problem" in said) ruled.steps.push(unanswered(rule, said.problem));
      if ("problem" in said || !said.yes) continue;
    }
    add(ruled, counting, facts);
    if (counting.do.stop || ruled.end !== null) break;
  }
  return ruled;
}

type Answer = Said | { again: Failure };

type Counting = Pick<Rule, "name" | "do"> & { why_less: string };

/** What a rule may do with a message that it is for, and why that is less than it says. */
function whatCounts(rule: Rule, { certain, facts }: { certain: boolean; facts: Facts }): Counting {
  const { name, do: acts } = rule;
  if (!certain) return { name, do: takingOf(acts), why_less: UNSIGNED };
  const is_gift = giftOf(acts) !== undefined && asksStrangers(rule) && !hasAuthority(facts);
  return is_gift ? { name, do: withoutGifts(acts), why_less: ASKED } : { name, do: acts, why_less: "" };
}

const UNSIGNED =
  " Only what it takes away counted: a field of the header that it looks for is not covered by the signature of the mail, so anybody may have added it.";
const ASKED =
  " Its contexts, connection and model were left out: its question is answered by what a stranger wrote. Add a condition on the sender to it.";

/** The part of a rule that takes something away, or only notes something. */
function takingOf({ skip, keep, wait, tags, authority, answer, forward_to, options }: Actions): Actions {
  const { tools, private: is_private } = options ?? {};
  const forbids = {
    ...(tools === undefined ? {} : { tools }),
    ...(is_private === undefined ? {} : { private: is_private }),
  };
  return {
    ...(skip === undefined ? {} : { skip }),
    ...(keep === undefined ? {} : { keep }),
    ...(wait === undefined ? {} : { wait }),
    ...(tags === undefined ? {} : { tags }),
    ...(authority === undefined ? {} : { authority }),
    ...(answer === undefined ? {} : { answer }),
    ...(forward_to === undefined ? {} : { forward_to }),
    ...(Object.keys(forbids).length === 0 ? {} : { options: forbids }),
  };
}

/** The first rule that says something about one thing has the last word on it; lists are put together. */
function add(ruled: Ruled, { name, do: acts, why_less }: Counting, facts: Facts): void {
  const { skip, keep, wait, stop: _, ...rest } = acts;
  const before = ruled.do;
  ruled.by = { ...saidBy(name, { ...rest, ...rest.options }), ...ruled.by };
  ruled.names.push(name);
  ruled.do = {
    ...rest,
    ...before,
    options: { ...rest.options, ...before.options },
    context_ids: [...new Set([...(before.context_ids ?? []), ...(rest.context_ids ?? [])])],
    tags: [...new Set([...(before.tags ?? []), ...(rest.tags ?? [])])],
  };
  if (skip || keep) ruled.end = { kind: skip ? "skip" : "keep", rule: name };
  if (wait && ruled.wait === null) ruled.wait = { rule: name, for: wait };
  ruled.steps.push(stepOf({ name, do: acts, why_less }, facts));
}

function saidBy(rule: string, said: object): Record<string, string> {
  return Object.fromEntries(Object.keys(said).map((what) => [what, rule]));
}

function stepOf({ name, do: { authority }, why_less }: Counting, facts: Facts): StepDraft {
  const narrowed = authority !== undefined && hasAuthority(facts) ? NARROWED : "";
  const output = `The rule “${name}” was for this message.${narrowed}${why_less}`;
  return { type: "context", name: "rule", output };
}

const NARROWED = " Its words were read as material, not as an instruction.";

function unanswered({ name }: Rule, problem: string): StepDraft {
  const output = `The rule “${name}” was passed over, because its question was not answered: ${problem}`;
  return { ...warningStep(output), to_strangers: "" };
}

/**
 * Until when a message waits; null where it does not, or does not any more. One that was accepted at a time that is still to come,
 * as the clock was ahead then, waits from now on.
 */
function untilOf(
  { wait }: Pick<Ruled, "wait">,
  {
    found: { waited, until: waiting },
    now,
    facts: { accepted, timezone },
  }: { found: RulesFound; now: number; facts: Pick<Facts, "accepted" | "timezone"> },
): number | null {
  if (wait === null || waited === true || (waiting !== undefined && waiting <= now)) return null;
  const until = nextClock(wait.for, { accepted: Math.min(accepted, now), timezone });
  return until > now ? until : null;
}

/** What conditions look at in a message: with those fields of its header that a signature covers, and with all that came. */
export interface Read {
  facts: Facts;
  as_came: Facts;
}

type FactColumns = Pick<MessageRow, "sender" | "tags" | "authority" | "created" | "raw_mail_id" | "subject">;

/** What the conditions of rules look at in a message, and its text. Their words are looked for in a thread, all at once. */
export async function factsOf(
  app: App,
  {
    message,
    timezone,
    input,
  }: Pick<Judged, "timezone" | "input"> & { message: Parameters<typeof sourceOf>[0] & FactColumns },
  rules: Rule[],
): Promise<Read & { text: string; steps: StepDraft[] }> {
  const { sender, tags, authority, created: accepted } = message;
  const { headers, headers_as_came, files } = input;
  const { text, size } = input.whole();
  const subject = message.raw_mail_id === null ? "" : (message.subject ?? "");
  const find = async (fields: RunInput["headers"]) => {
    const sought = soughtBy(rules, { subject, text, headers: fields });
    return sought.length === 0 ? {} : workOnText(app, "words", { sought }, sourceOf(message));
  };
  const found = await find(headers);
  const is_same = headers_as_came === headers || !rules.some(looksAtHeader);
  const found_as_came = is_same ? found : await find(headers_as_came);
  const all_found = found !== undefined && found_as_came !== undefined;
  const facts: Facts = {
    // Anybody can write another name into mail that nothing proves: no rule may take it for that person's.
    sender: authority === "unauthenticated" ? "" : (sender ?? ""),
    tags: storedJson<string[]>(tags, []).map(comparable),
    authority,
    headers,
    kinds: kindsOf(files),
    size,
    found: found ?? {},
    accepted,
    timezone,
  };
  const as_came = is_same ? facts : { ...facts, headers: headers_as_came, found: found_as_came ?? {} };
  return {
    facts,
    as_came,
    text,
    steps: all_found ? [] : [{ ...warningStep(UNREAD), to_strangers: "" }],
  };
}

function looksAtHeader({ when }: Rule): boolean {
  return when.some(({ field }) => field === "header");
}

const UNREAD =
  "The words that rules look for in texts could not be looked for, because that took too long: rules that name such words were taken as if they were not there. Have it tried again if it should have been one of them.";

/**
 * Returns the answer to a question, which is kept as soon as it is there: whatever comes between, it is asked once. A model that
 * fails for the moment is given a second chance, as one is that works on a message.
 */
async function answerTo(
  app: App,
  { message }: Judged,
  { question, questions, found }: { question: string; questions: Questions; found: RulesFound },
): Promise<Answer> {
  const key = questionKey(question);
  const known = found.answers?.[key];
  if (known !== undefined) return { yes: known, usage: null };
  const said = await questions.ask(question);
  const failure = "yes" in said ? undefined : said.failure;
  const again = failure !== undefined && found.asked_again !== true && mayWaitFor(app, failure, message);
  if ("yes" in said) {
    const usage = sumOfUsage(found.usage ?? null, said.usage);
    Object.assign(found, { answers: { ...found.answers, [key]: said.yes }, ...(usage && { usage }) });
  } else if (again) found.asked_again = true;
  else return said;
  await app.write((tx) => noteRules(tx, { id: message.id, rules: JSON.stringify(found) }));
  return again ? { again: failure } : said;
}

/** The name under which the answer to a question is kept. */
function questionKey(question: string): string {
  return sha256(question, "hex").slice(0, 32);
}

export const noteRules = prepared((db, row: { id: string; rules: string }) =>
  db.updateTable("messages").set({ rules: row.rules }).where("id", "=", row.id),
);

/** A message of which a rule takes the authority, if it has more than a stranger's. A button that was pressed says nothing to be read. */
export function narrowed(message: MessageRow, { do: acts }: Ruled): MessageRow {
  const pressed = message.source === "api" && message.approval_id !== null;
  return acts.authority !== undefined && hasAuthority(message) && !pressed
    ? { ...message, authority: acts.authority }
    : message;
}

/** A command with the options and tags of rules: what its author typed counts for more, but forbids only what is allowed. */
export function underRules<C extends Command>(command: C, { do: acts }: Ruled): C {
  const { options = {}, tags = [], answer } = acts;
  const forbidden = {
    ...(options.tools === false ? { tools: false } : {}),
    ...(options.private === true ? { private: true } : {}),
    ...(answer === false ? { reply: false } : {}),
  };
  const given = Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, typeof value === "number" ? String(value) : value]),
  );
  return {
    ...command,
    options: { ...given, ...command.options, ...forbidden },
    tags: [...new Set([...command.tags, ...tags])],
  };
}
