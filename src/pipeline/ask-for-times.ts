import { complete } from "../ai/llm.ts";
import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { deadline } from "../lib/deadline.ts";
import { openConnectionOf } from "../resources/connections/connections.ts";
import { timesFor, type Unclear } from "../resources/schedules/times-for.ts";
import { momentWords, patternWords } from "../resources/schedules/shown-times.ts";
import { timesAfter } from "../resources/schedules/times.ts";
import { fetchOf } from "./ask-model.ts";
import type { Run } from "./close.ts";
import { countTokens } from "./count-tokens.ts";

const WITHIN_MS = 30_000;
const PROPOSALS = 3;
/** Characters of a line of the model that are read. */
const MAX_LINE_CHARS = 100;

/** A time that may have been meant: as it would be typed, and in words. */
export interface Proposal {
  line: string;
  words: string;
}

/**
 * Asks the model of the inbox what words about a time may mean, in whatever language they are. Of its answer only lines count that
 * are times; undefined where there is none.
 */
export async function askForTimes(
  app: App,
  run: Run,
  { typed, unclear, user }: { typed: string; unclear: Unclear; user: UserRow },
): Promise<Proposal[] | undefined> {
  const connection = await openConnectionOf(app, run.inbox).catch((error: unknown) => {
    if (error instanceof AppError) return undefined;
    throw error;
  });
  if (connection === undefined) return undefined;
  const { trusted: _, fallback_connection_id: __, ...model } = connection;
  using cap = deadline(run.signal, WITHIN_MS);
  const instruction = `${ASK[unclear.member]}\n\n${typed}`;
  const answer = await complete({
    connection: model,
    messages: [
      { role: "system", content: POLICY },
      { role: "user", content: instruction },
    ],
    tools: [],
    fetch: fetchOf(app, connection),
    signal: cap.signal,
    brief: { instruction, content: "", attachments: [], contexts: [] },
  });
  if (run.signal.aborted) throw run.signal.reason;
  if (!answer.ok) return undefined;
  countTokens(app, answer.usage);
  const found = answer.text
    .split("\n")
    .flatMap((line) => proposalIn(app, line, { member: unclear.member, user }));
  const different = found.filter(({ line }, index) => found.findIndex((one) => one.line === line) === index);
  run.connection = connection;
  return different.length === 0 ? undefined : different.slice(0, PROPOSALS);
}

const POLICY =
  "You translate words about times. Answer with up to three lines and nothing else: each one way in which the words may be meant.";

const ASK: Record<Unclear["member"], string> = {
  every:
    "Write each as a crontab pattern of five fields, with one number as its minute, such as 0 8 * * 1-5 for every weekday at 8:00. These are the words, in any language:",
  at: "Write each as a day and a time, such as 2026-12-24 09:00, or as in 3 days. These are the words, in any language:",
  until: "Write each as a day, such as 2026-12-24. These are the words, in any language:",
  tz: "Write each as a zone of the IANA database, such as Europe/Berlin. These are the words, in any language:",
};

function proposalIn(
  app: App,
  line: string,
  { member, user }: { member: Unclear["member"]; user: UserRow },
): Proposal[] {
  const value = (/`([^`]+)`/.exec(line)?.[1] ?? line.replace(/^\s*- /, "")).trim();
  if (value === "" || value.length > MAX_LINE_CHARS || member === "tz" || member === "until") return [];
  const words = { every: undefined, at: undefined, tz: undefined, until: undefined, [member]: value };
  const read = timesFor(words, { now: app.now(), timezone: user.timezone });
  if ("unclear" in read) return [];
  const [next] = timesAfter(read.times, app.now(), 1);
  const { pattern } = read.times;
  const typed = pattern ?? value;
  const often = pattern === null ? "" : `${patternWords(pattern)}, next `;
  return [{ line: `--${member}="${typed}"`, words: `${often}${momentWords(next ?? 0, user.timezone)}` }];
}
