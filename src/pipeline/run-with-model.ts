import { domainToUnicode } from "node:url";
import { memoryTools } from "./memory-tools.ts";
import { callingCodeOf } from "../trust/guard/calling-codes.ts";
import { withoutFileNames } from "../trust/own-words/file-names.ts";
import { type Completion } from "../ai/llm.ts";
import { remembered } from "../db/prepared.ts";
import { deadlineFailure } from "../ai/llm-faults.ts";
import type { ChatMessage } from "../ai/llm-messages.ts";
import type { App } from "../app.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";
import { recallTurns, type Turn } from "../resources/conversations/conversations.ts";
import type { Deadline } from "../lib/deadline.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { modelAsker } from "./ask-model.ts";
import type { Run } from "./close.ts";
import { createFileTool } from "./create-file.ts";
import { withEarlierCalls } from "./earlier-calls.ts";
import { newNonce } from "../trust/shown/fence.ts";
import { AGAIN_INSTRUCTION, buildPrompt, materialOf, MAX_CONTENT_CHARS } from "./prompt.ts";
import { maySchedule } from "./schedule.ts";
import { answererOf, warningStep } from "./steps.ts";
import { workOnText } from "./text-work.ts";
import { converse, type Talk } from "./tool-loop.ts";
import { offersOf, type OfferedTool, openToolbox, type Toolbox } from "./toolbox.ts";
import type { Understanding } from "./read-instruction.ts";
import { ordersNotIn } from "../trust/guard/written-orders.ts";
import { isByOwner } from "./to-note.ts";
import { writingRoom } from "./written-texts.ts";

export interface Question {
  asked: Understanding;
  connection: OpenConnection;
  /** The time that the run may take. */
  cap: Deadline;
}

/** Does the work of a run: gathers the tools that it may use, builds the prompt, and talks with the model. */
export async function runWithModel(app: App, run: Run, question: Question): Promise<Completion> {
  const { asked, connection } = question;
  const { signal } = question.cap;
  try {
    const box = await openToolbox(app, asked.targets, signal);
    const missing = asked.command.target === null ? undefined : box.missing.get(asked.command.target);
    if (missing !== undefined) return withoutTools(missing);
    run.steps.push(...warningsOf(box));
    const tools = [...box.tools, ...ownTools(app, run, { asked, box })];
    const nonce = newNonce();
    const { messages, read } = await openTalk(app, run, { asked, tools, nonce });
    const ask = modelAsker(app, run, { ...question, tools });
    return await converse(app, run, {
      messages,
      tools,
      powers: asked.powers,
      nonce,
      heard: {
        read,
        anybodys: read,
        servers: new Set(tools.filter(({ tool }) => tool.foreign).map(({ tool }) => tool.target)),
      },
      read_at: [],
      given: new Map(),
      answers: new Map(),
      places: run.journal.earlier.flatMap(({ places = [] }) => places),
      instruction: ownWords(run, asked).join("\n"),
      said: [run.message.subject ?? "", run.input.instruction].join("\n"),
      own: [run.input.subject, run.input.sure].join("\n"),
      writing: writingRoom(),
      shared: sharedPage(run, asked),
      told: [],
      since: [],
      answered: new Set(run.journal.earlier.flatMap(({ step }) => (step ? [answererOf(step)] : []))),
      written: [],
      shaped: new Set(),
      vouched: run.trust.material,
      judged: Promise.resolve(),
      orders: isByOwner(run.message) ? ordersNotIn(asked.sure, asked.orders) : asked.orders,
      own_domains: tools.length === 0 ? [] : await ownDomains(app, run),
      calling_code: callingCodeOf(run.owner_timezone),
      subject_alone: !run.input.names,
      failed: new Map(),
      in_vain: asked.in_vain,
      ask,
      signal,
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    return deadlineFailure(connection, signal.reason);
  }
}

/** The domains at which the account may have inboxes: the service's, and its own. */
async function ownDomains(app: App, { message, inbox }: Run): Promise<string[]> {
  const { domain, former_domains } = app.config.smtp;
  const rows = await domainsOf(app.db, { user_id: message.user_id });
  const all = [domain, ...former_domains, inbox.domain, ...rows.map((row) => row.domain)];
  return [...new Set([...all, ...all.map(domainToUnicode)])];
}

const domainsOf = remembered((db, key: { user_id: string }) =>
  db.selectFrom("inboxes").select("domain").distinct().where("user_id", "=", key.user_id),
);

/**
 * The failure of a run whose named target has no tools: whoever named it wants the tools used, not an answer that only
 * speaks of them.
 */
function withoutTools(message: string): Completion {
  return { ok: false, code: "unreachable", message, retryable: false, retry_after_seconds: null };
}

function warningsOf({ missing, left_out }: Toolbox) {
  const sentences = [...missing].map(
    ([name, message]) => `The tools of @${name} could not be used: ${message}`,
  );
  if (left_out > 0)
    sentences.push(`${left_out} tools were left out: they are too many for one run, or badly described.`);
  return sentences.map(warningStep);
}

function ownTools(
  app: App,
  run: Run,
  { asked: { powers }, box }: { asked: Understanding; box: Toolbox },
): OfferedTool[] {
  const tools = [
    createFileTool(app, run.made, () => run.trust, sourceOf(run.message)),
    ...memoryTools(app, run.message, run.inbox),
  ];
  return offersOf(
    tools.filter(({ target }) => powers.mayUse(target)),
    box.tools,
  );
}

/** Builds the prompt of a run. From here on it is known whether the model has read words of others. */
async function openTalk(
  app: App,
  run: Run,
  { asked, tools, nonce }: { asked: Understanding; tools: OfferedTool[]; nonce: string },
): Promise<{ messages: ChatMessage[]; read: boolean }> {
  const { input, message } = run;
  const turns = run.begins ? [] : await recallTurns(app.db, message, { found: run.from_memory });
  const material = materialOf({ files: input.manifest, content: input.content });
  const from = sourceOf(message);
  const fenced = await workOnText(app, "fence", { material, nonce, max_chars: MAX_CONTENT_CHARS }, from);
  run.unread = fenced === undefined;
  if (run.unread) run.steps.push(warningStep("The content could not be read, so it was left out."));
  const prompt = buildPrompt(
    {
      now: writtenMoment(app.now(), run.owner_timezone),
      instruction: asksAgain(asked, turns) ? AGAIN_INSTRUCTION : asked.instruction,
      subject: subjectOf(run, asked),
      content: input.content,
      turns,
      files: input.manifest,
      images: input.images,
      contexts: asked.contexts,
      wishes: asked.settings.wishes,
      tools: tools.length > 0,
      schedules: maySchedule(message),
    },
    nonce,
    fenced ?? { text: "", removed: 0, left: 0 },
  );
  run.steps.push(...prompt.warnings.map(warningStep));
  // Only calls of tools that the sender may still use are told.
  const earlier = run.journal.earlier.filter(({ step }) => asked.powers.mayUse(step?.server ?? ""));
  const messages = await withEarlierCalls(app, earlier, { messages: prompt.messages, nonce, from });
  const recalls = turns.length > 0 || earlier.length > 0;
  const read = !input.plain || recalls;
  const servers = new Set(tools.filter(({ tool }) => tool.foreign).map(({ tool }) => tool.target));
  const few_words = input.few_words === true;
  if ((input.plain || few_words) && !recalls) run.alone = { few_words, servers: [...servers] };
  run.trust = {
    tainted: read || servers.size > 0,
    trusted_text: [...trustedTexts(run, asked), input.page].join("\n"),
    // Earlier answers are no material here: an address that one of them made up would count as known in the next run.
    material: input.content,
  };
  return { messages, read };
}

/** Whether a mail says only how to go on with what was asked for in the turn before. */
function asksAgain({ command }: Understanding, turns: Turn[]): boolean {
  const { target, options } = command;
  const says = target !== null || Object.keys(options).length > 0;
  return says && command.command === "" && command.macro === null && (turns.at(-1)?.instruction ?? "") !== "";
}

/** All that is trusted, but for the address of the page that was shared. */
function trustedTexts(run: Run, asked: Understanding): string[] {
  return [
    ...namingWords(run, asked),
    ...asked.contexts.map(({ text }) => text),
    ...ownAddresses(run),
    ...(asked.is_standing ? [asked.instruction] : []),
  ];
}

/** The page, if a program may have shared it. In an answer its author has written the address. */
function sharedPage(run: Run, asked: Understanding): Talk["shared"] {
  const { page, may_share } = run.input;
  if (page === "" || may_share !== "page") return null;
  return { page, trusted_text: trustedTexts(run, asked).join("\n") };
}

/** The words that the author surely wrote for this run. */
function ownWords({ input }: Run, { sure }: Understanding): string[] {
  return [sure, withoutFileNames(input.sure, input.filenames), ...(input.plain ? [input.subject] : [])];
}

/**
 * The words in which an address counts as named. If the mail has only a subject, these are what a macro says itself: without
 * the words of the subject its text could be another address.
 */
function namingWords(run: Run, asked: Understanding): string[] {
  return run.input.names ? ownWords(run, asked) : [asked.macro_words];
}

/** The subject if it is part of what its author wants; empty if it is the instruction itself. */
function subjectOf({ input }: Run, { instruction }: Understanding): string {
  return input.plain && ![input.instruction, instruction].includes(input.subject) ? input.subject : "";
}

/**
 * The addresses of the people whose run it is. An inbox's own address is never among them: a mail that a tool sent
 * there in its owner's name would come back as an instruction.
 */
function ownAddresses({ message, owner_email }: Run): string[] {
  return [message.sender, owner_email].filter((address) => address !== null);
}
