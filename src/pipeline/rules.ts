import type { App } from "../app.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { sha256 } from "../lib/sha256.ts";
import { storedJson } from "../lib/stored-json.ts";
import { type Facts, fits, kindsOf, nextClock } from "../resources/inboxes/rules/match.ts";
import { type Actions, type Rule, storedRules } from "../resources/inboxes/rules/rules.ts";
import { type RulesFound, rulesFound } from "../resources/messages/rules-found.ts";
import { comparable, soughtBy } from "../resources/inboxes/rules/words.ts";
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
  /** What has it wait, and the rule that does; null where none does. */
  wait: { rule: string; for: NonNullable<Actions["wait"]> } | null;
  /** Until when it waits, in unix seconds; null where it does not. */
  until: number | null;
  /** What ends it without a run, and the rule that does. */
  end: { kind: "skip" | "keep"; rule: string } | null;
  /** Whether the model has answered a question about it. */
  asked: boolean;
  /** Why a question has no answer for the moment: the message is to be looked at again later. */
  again: Failure | null;
  steps: StepDraft[];
}

const NO_RULES: Ruled = {
  names: [],
  do: {},
  wait: null,
  until: null,
  end: null,
  asked: false,
  again: null,
  steps: [],
};

interface Judged {
  message: MessageRow;
  inbox: InboxRow;
  timezone: string;
  input: Pick<RunInput, "headers" | "whole"> & { files: { filename: string; content_type: string }[] };
}

/**
 * Returns what the rules of an inbox say about a message. A message that somebody has tried again, or that a schedule made, is
 * neither left out nor has to wait: that is what was asked for.
 */
export async function judgeByRules(app: App, judged: Judged, signal: AbortSignal): Promise<Ruled> {
  const stored = storedRules(judged.inbox);
  if (stored === null) return untilMended(app, judged);
  const rules = stored.filter(({ enabled }) => enabled);
  if (rules.length === 0) return NO_RULES;
  const { message } = judged;
  const found = rulesFound(message);
  const { facts, text: material, steps } = await factsOf(app, judged, rules);
  using questions = questionsAbout(app, { ...judged, material }, signal);
  const ruled = await gather(rules, {
    facts,
    answer: (question) => answerTo(app, judged, { question, questions, found }),
  });
  if (ruled.again !== null) return ruled;
  ruled.steps.unshift(...steps);
  const asked_for = message.retry_of !== null || message.schedule_id !== null;
  const until = untilOf(ruled, { found, now: app.now(), facts });
  const settled = asked_for ? { ...ruled, end: null, until: null } : { ...ruled, until };
  if (settled.names.length > 0 || settled.asked) {
    const kept: RulesFound = { ...found, matched: settled.names };
    await app.write((tx) => noteRules(tx, { id: message.id, rules: JSON.stringify(kept) }));
  }
  return settled;
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

/** Puts together what rules say about a message; `answer` is asked their questions. */
export async function gather(
  rules: Rule[],
  { facts, answer }: { facts: Facts; answer: (question: string) => Promise<Answer> },
): Promise<Ruled> {
  const ruled: Ruled = { ...NO_RULES, names: [], do: {}, steps: [] };
  for (const rule of rules) {
    if (!fits(rule, facts)) continue;
    if (rule.question !== null) {
      const said = await answer(rule.question);
      if ("again" in said) return { ...ruled, again: said.again };
      if ("yes" in said) ruled.asked = true;
      if ("problem" in said) ruled.steps.push(unanswered(rule, said.problem));
      if ("problem" in said || !said.yes) continue;
    }
    add(ruled, rule);
    if (rule.do.stop || ruled.end !== null) break;
  }
  return ruled;
}

type Answer = Said | { again: Failure };

/** The first rule that says something about one thing has the last word on it; lists are put together. */
function add(ruled: Ruled, { name, do: acts }: Rule): void {
  const { skip, keep, wait, stop: _, ...rest } = acts;
  const before = ruled.do;
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
  ruled.steps.push({ type: "context", name: "rule", output: `The rule “${name}” was for this message.` });
}

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

/** What the conditions of rules look at in a message, and its text. Their words are looked for in a thread, all at once. */
export async function factsOf(
  app: App,
  { message, timezone, input }: Omit<Judged, "inbox">,
  rules: Rule[],
): Promise<{ facts: Facts; text: string; steps: StepDraft[] }> {
  const { sender, tags, authority, created: accepted } = message;
  const { headers, files } = input;
  const { text, size } = input.whole();
  const subject = message.raw_mail_id === null ? "" : (message.subject ?? "");
  const sought = soughtBy(rules, { subject, text, headers });
  const found = sought.length === 0 ? {} : await workOnText(app, "words", { sought }, sourceOf(message));
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
  return { facts, text, steps: found === undefined ? [{ ...warningStep(UNREAD), to_strangers: "" }] : [] };
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
  if (known !== undefined) return { yes: known };
  const said = await questions.ask(question);
  const failure = "yes" in said ? undefined : said.failure;
  const again = failure !== undefined && found.asked_again !== true && mayWaitFor(failure);
  if ("yes" in said) found.answers = { ...found.answers, [key]: said.yes };
  else if (again) found.asked_again = true;
  else return said;
  await app.write((tx) => noteRules(tx, { id: message.id, rules: JSON.stringify(found) }));
  return again ? { again: failure } : said;
}

/** The name under which the answer to a question is kept. */
export function questionKey(question: string): string {
  return sha256(question, "hex").slice(0, 32);
}

export const noteRules = prepared((db, row: { id: string; rules: string }) =>
  db.updateTable("messages").set({ rules: row.rules }).where("id", "=", row.id),
);

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
