import { type Completion } from "../ai/llm.ts";
import { remembered } from "../db/prepared.ts";
import { deadlineFailure } from "../ai/llm-faults.ts";
import type { ChatMessage } from "../ai/llm-messages.ts";
import type { App } from "../app.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";
import { recallTurns } from "../resources/conversations/conversations.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { modelAsker } from "./ask-model.ts";
import type { Run } from "./close.ts";
import { createFileTool } from "./create-file.ts";
import { withEarlierCalls } from "./earlier-calls.ts";
import { newNonce } from "../trust/shown/fence.ts";
import { buildPrompt, materialOf, MAX_CONTENT_CHARS } from "./prompt.ts";
import { warning } from "./steps.ts";
import { workOn } from "./text-work.ts";
import { converse } from "./tool-loop.ts";
import { offered, type OfferedTool, openToolbox, type Toolbox } from "./toolbox.ts";
import type { Understanding } from "./understand.ts";

export interface Question {
  asked: Understanding;
  connection: OpenConnection;
  signal: AbortSignal;
}

/** Has the work of a run done: the tools that it may use, the prompt, and the talk with the model. */
export async function work(app: App, run: Run, question: Question): Promise<Completion> {
  const { asked, connection, signal } = question;
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
      places: run.journal.earlier.flatMap(({ places = [] }) => places),
      instruction: ownWords(run, asked).join("\n"),
      own_domains: tools.length === 0 ? [] : await ownDomains(app, run),
      ask,
      signal,
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    return deadlineFailure(connection, signal.reason);
  }
}

/** Where the inboxes of the account are: at the service's domains, and at domains of its own. */
async function ownDomains(app: App, { message, inbox }: Run): Promise<string[]> {
  const { domain, former_domains } = app.config.smtp;
  const rows = await domainsOf(app.db, { user_id: message.user_id });
  return [...new Set([domain, ...former_domains, inbox.domain, ...rows.map((row) => row.domain)])];
}

const domainsOf = remembered((db, key: { user_id: string }) =>
  db.selectFrom("inboxes").select("domain").distinct().where("user_id", "=", key.user_id),
);

/** Who named a target wants its tools used, not an answer that only speaks of them. */
function withoutTools(message: string): Completion {
  return { ok: false, code: "unreachable", message, retryable: false, retry_after_seconds: null };
}

function warningsOf({ missing, left_out }: Toolbox) {
  const sentences = [...missing].map(
    ([name, message]) => `The tools of @${name} could not be used: ${message}`,
  );
  if (left_out > 0)
    sentences.push(`${left_out} tools were left out: they are too many for one run, or badly described.`);
  return sentences.map(warning);
}

function ownTools(
  app: App,
  run: Run,
  { asked: { powers }, box }: { asked: Understanding; box: Toolbox },
): OfferedTool[] {
  const tool = createFileTool(app, run.made, () => run.trust, sourceOf(run.message));
  return powers.mayUse(tool.target) ? offered([tool], box.tools) : [];
}

/** The prompt of a run; from here on it is known what the model has read. */
async function openTalk(
  app: App,
  run: Run,
  { asked, tools, nonce }: { asked: Understanding; tools: OfferedTool[]; nonce: string },
): Promise<{ messages: ChatMessage[]; read: boolean }> {
  const { input, message } = run;
  const turns = run.begins ? [] : await recallTurns(app.db, message);
  const material = materialOf({ files: input.manifest, content: input.content });
  const from = sourceOf(message);
  const fenced = await workOn(app, "fence", { material, nonce, max_chars: MAX_CONTENT_CHARS }, from);
  if (fenced === undefined) run.steps.push(warning("The content could not be read, so it was left out."));
  const prompt = buildPrompt(
    {
      instruction: asked.instruction,
      subject: subjectOf(run, asked),
      content: input.content,
      turns,
      files: input.manifest,
      images: input.images,
      contexts: asked.contexts,
      wishes: asked.settings.wishes,
      tools: tools.length > 0,
    },
    nonce,
    fenced ?? { text: "", removed: 0, left: 0 },
  );
  run.steps.push(...prompt.warnings.map(warning));
  // As much as its sender may still have it do.
  const earlier = run.journal.earlier.filter(({ step }) => asked.powers.mayUse(step?.server ?? ""));
  const messages = await withEarlierCalls(app, earlier, { messages: prompt.messages, nonce, from });
  const read = !input.plain || turns.length > 0 || earlier.length > 0;
  run.trust = {
    tainted: read || tools.some(({ tool }) => tool.foreign),
    trusted_text: [
      ...namingWords(run, asked),
      ...asked.contexts.map(({ text }) => text),
      ...ownAddresses(run),
      ...(asked.instruction === run.inbox.default_instruction ? [asked.instruction] : []),
    ].join("\n"),
    // Not the earlier answers: what one of them made up would count as known in the next one.
    material: input.content,
  };
  return { messages, read };
}

/** What its author surely wrote for this run, and the page that was shared. */
function ownWords({ input }: Run, { sure }: Understanding): string[] {
  return [sure, input.sure, input.page, ...(input.plain ? [input.subject] : [])];
}

/** Those in which an address is named by being there: of a subject alone only what a macro made of it. */
function namingWords(run: Run, asked: Understanding): string[] {
  const { sure, command } = asked;
  if (run.input.names) return ownWords(run, asked);
  return command.command === "" ? [sure] : [sure.replaceAll(command.command, "\n")];
}

/** The subject where it is a part of what its author wants; alone it is the instruction itself. */
function subjectOf({ input }: Run, { instruction }: Understanding): string {
  return input.plain && ![input.instruction, instruction].includes(input.subject) ? input.subject : "";
}

/**
 * Returns the addresses of the people whose run it is. Never that of an inbox: what a tool mails there in its owner's
 * name would come back as an order.
 */
function ownAddresses({ message, owner_email }: Run): string[] {
  return [message.sender, owner_email].filter((address) => address !== null);
}
