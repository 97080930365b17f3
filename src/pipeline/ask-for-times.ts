import { knownZone } from "../lib/written-moment.ts";
import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { sumOfUsage } from "../resources/messages/rules-found.ts";
import { timesFor } from "../resources/schedules/times-for.ts";
import { momentWords, patternWords } from "../resources/schedules/shown-times.ts";
import { timesAfter } from "../resources/schedules/times.ts";
import { askOnce, connectionToAsk } from "./ask-once.ts";
import type { Run } from "./close.ts";
import { countTokens } from "./count-tokens.ts";

const WITHIN_MS = 30_000;
const PROPOSALS = 3;
/** Characters of a line of the model that are read. */
const MAX_LINE_CHARS = 100;

/** Which words are asked about. */
type Member = "every" | "at";

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
  { typed, member, user: owner }: { typed: string; member: Member; user: UserRow },
): Promise<Proposal[] | undefined> {
  const connection = await connectionToAsk(app, run.inbox);
  if ("problem" in connection) return undefined;
  const instruction = `${ASK[member]}\n\n${typed}`;
  const brief = { instruction, content: "", attachments: [], contexts: [] };
  const question = { system: POLICY, user: instruction, brief, within_ms: WITHIN_MS };
  const answer = await askOnce(
    app,
    { inbox: run.inbox, connection, whose: "household", waits: true },
    question,
    run.signal,
  );
  if (run.signal.aborted) throw run.signal.reason;
  run.usage = sumOfUsage(run.usage ?? null, answer.usage ?? null);
  if (!answer.ok) return undefined;
  countTokens(app, answer.usage);
  const lines = answer.text.split("\n", MAX_LINES);
  const found = lines.flatMap((line) => proposalIn(app, line, { member, user: owner }));
  const different = found.filter(({ line }, index) => found.findIndex((one) => one.line === line) === index);
  run.connection = connection;
  return different.length === 0 ? undefined : different.slice(0, PROPOSALS);
}

/** Lines of the model's answer that are read: it was asked for three, and may begin with words of its own. */
const MAX_LINES = 12;

const POLICY =
  "You translate words about times. Answer with up to three lines and nothing else: each one way in which the words may be meant.";

const ASK: Record<Member, string> = {
  every:
    "Write each as a crontab pattern of five fields, with one number as its minute, such as 0 8 * * 1-5 for every weekday at 8:00. These are the words, in any language:",
  at: "Write each as a day and a time, such as 2026-12-24 09:00, or as in 3 days. These are the words, in any language:",
};

function proposalIn(app: App, line: string, { member, user }: { member: Member; user: UserRow }): Proposal[] {
  const value = (/`([^`]+)`/.exec(line)?.[1] ?? line.replace(/^\s*- /, "")).trim();
  if (value === "" || value.length > MAX_LINE_CHARS) return [];
  const words = { every: undefined, at: undefined, tz: undefined, until: undefined, [member]: value };
  const read = timesFor(words, { now: app.now(), timezone: knownZone(user.timezone) });
  if ("unclear" in read) return [];
  const [next] = timesAfter(read.times, app.now(), 1);
  const { pattern } = read.times;
  const typed = pattern ?? value;
  const often = pattern === null ? "" : `${patternWords(pattern)}, next `;
  return [
    { line: `--${member}="${typed}"`, words: `${often}${momentWords(next ?? 0, knownZone(user.timezone))}` },
  ];
}
