import type { Completion } from "../ai/llm.ts";
import { type ChatMessage, hasImages, withOwnIds, withoutImages } from "../ai/llm-messages.ts";
import type { App } from "../app.ts";
import type { InboxRow } from "../db/schema.ts";
import { type Deadline, deadline } from "../lib/deadline.ts";
import { NEVER_MS } from "../lib/wait-limit.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";
import { noteUse } from "../resources/connections/note-use.ts";
import { askFallbacks } from "./ask-fallbacks.ts";
import { askWithinBudget } from "./ask-within-budget.ts";
import type { Run } from "./close.ts";
import { FILES_TARGET } from "../trust/guard/guard.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { sumOfUsage } from "../resources/messages/rules-found.ts";
import { causeOf } from "../resources/messages/run-use.ts";
import { type Finder, isFound, noteFact } from "./known-models.ts";
import { type StepDraft, warningStep } from "./steps.ts";
import type { OfferedTool } from "./toolbox.ts";
import type { Talk } from "./tool-loop.ts";
import type { Question } from "./run-with-model.ts";

type Failure = Completion & { ok: false };

/** How models and their servers say that they cannot see, or cannot call anything. */
const CANNOT_SEE = /\b(images?|image_url|vision|multi-?modal|content (type|part|format)s?)\b/i;
const CANNOT_CALL = /\b(tools?|tool_choice|functions?|function[ _-]?call(s|ing)?)\b/i;
/**
 * Matches a refusal that means the model never takes them; else it may be about these pictures or these tools, which
 * somebody else made.
 */
const NEVER = /\b(un)?support|\benable/i;
const THIS_ONE =
  /schema|propert|keyword|\$ref|(one|any|all)Of\b|\b(tool|function)s?[.[]\d|function '|invalid|\bvalid|format|too (large|many|long|small)|\bsizes?\b/i;
/** Failures that have nothing to do with what was sent. */
const OTHER_FAULTS = new Set<Failure["code"]>([
  "invalid_credentials",
  "rate_limited",
  "quota_exceeded",
  "input_too_long",
  "content_filtered",
  "timeout",
  "cancelled",
  "unreachable",
  "tls_error",
  "blocked_address",
  "budget_used_up",
]);

/** What a model was found not to take. */
interface Limits {
  blind: boolean;
  no_tools: boolean;
  /** What the model said against these tools, if it may take others. */
  refused?: string;
}

/**
 * Returns a function that asks the connection of a run. If that fails, its fallbacks are asked once each, in order; the
 * first that answers is asked from then on. The fallbacks of a fallback are never asked, and none is once a tool may have
 * changed something. A model that takes no pictures or no tools is asked without them, and the sender is told.
 */
export function modelAsker(app: App, run: Run, question: Question & { tools: OfferedTool[] }): Talk["ask"] {
  const { cap, tools } = question;
  const found = new Map<string, Limits>();
  const request = { ...requestOf(run, question), found, inbox: run.inbox };
  let connection = question.connection;
  const untried = [...connection.fallback_connection_ids];
  const ask = async (talk: ChatMessage[], offers: OfferedTool[]): Promise<Completion> => {
    const messages = connection === question.connection ? talk : withOwnIds(talk);
    // What has been begun is not gone on with by a model that may understand it in another way.
    const others = run.changed ? [] : untried;
    const askOne = async (asked: OpenConnection, said: ChatMessage[]): Promise<Completion> => {
      using part = partOf(cap, others.length);
      const now = { signal: part.signal, waits: others.length === 0, messages: said, offers };
      const next = await askAble(app, asked, { ...request, ...now });
      noteUsage(run, next);
      await noteUse(app, { user_id: run.inbox.user_id, connection: asked, answer: next });
      return next;
    };
    const answer = await askOne(connection, messages);
    if (answer.ok || run.changed) return answer;
    const fallbacks = { user_id: run.inbox.user_id, untried, signal: cap.signal, failure: answer };
    const other = await askFallbacks(app, fallbacks, (fallback) => askOne(fallback, withOwnIds(talk)));
    if (!("connection" in other)) return other.answer;
    const silent = [connection, ...other.silent];
    run.steps.push(fallbackStep({ silent, code: answer.code }, other.connection));
    connection = other.connection;
    return other.answer;
  };
  return async (messages, may) => {
    const first = await ask(messages, may.tools ? tools : []);
    // Some providers refuse messages that hold calls of tools where the tools are not offered along with them.
    const wants_tools = !may.tools && !first.ok && !OTHER_FAULTS.has(first.code);
    const answer = wants_tools && CANNOT_CALL.test(first.message) ? await ask(messages, tools) : first;
    if (answer.ok)
      tellLimits(run, {
        model: connection.model,
        limits: limitsOf(app, connection, request),
        tools,
        images: hasImages(messages),
      });
    return answer;
  };
}

/** The time of a run that one model may take: half of what is left, while `others` could still be asked in its place. */
function partOf({ signal, left_ms }: Deadline, others: number): Deadline {
  return deadline(signal, others === 0 ? NEVER_MS : left_ms() / 2);
}

/** Says which model has answered in the place of others; `code` is why the first of them did not. */
function fallbackStep(
  { silent, code }: { silent: OpenConnection[]; code: string },
  answerer: OpenConnection,
): StepDraft {
  const asked = [...silent, answerer];
  const models = new Set(asked.map(({ model }) => model));
  const names = asked.map(({ model, label }) =>
    models.size === asked.length ? model : `${model} (“${label}”)`,
  );
  const other = names.pop() ?? "";
  const words =
    names.length > 1
      ? `The models ${names.slice(0, -1).join(", ")} and ${names.at(-1)} did not answer; ${other} did in their place.`
      : code === "budget_used_up"
        ? `The model ${names[0]} was not asked, to stay within a budget; ${other} was in its place.`
        : `The model ${names[0]} did not answer; ${other} did in its place.`;
  return { ...warningStep(words), to_strangers: "" };
}

/** What was read and written counts, whether or not it was of use. */
function noteUsage(run: Run, { usage = null }: Completion): void {
  run.usage = sumOfUsage(run.usage ?? null, usage);
}

/** Returns the parts of a question that are the same for every model. */
function requestOf(run: Run, { asked, cap }: Question) {
  const { max_tokens, temperature } = asked.settings;
  const brief = {
    instruction: asked.instruction,
    content: run.input.content,
    attachments: run.input.files.map(({ filename }) => filename),
    contexts: asked.contexts.map(({ title }) => title),
  };
  return {
    brief,
    signal: cap.signal,
    /**
     * Whether later runs may rely on what this run finds out about the model. Those of strangers teach nothing: what
     * they send must not decide what the owner's runs are asked with.
     */
    teaches: hasAuthority(run.message),
    /** A replay is asked for by somebody with a key of the owner's, whoever wrote the message. */
    whose: run.record === undefined ? causeOf(run.message) : ("household" as const),
    ...(max_tokens === null ? {} : { max_tokens }),
    ...(temperature === null ? {} : { temperature }),
  };
}

type Request = ReturnType<typeof requestOf> & {
  waits: boolean;
  messages: ChatMessage[];
  offers: OfferedTool[];
  /** What this run has found out, by model. */
  found: Map<string, Limits>;
  inbox: InboxRow;
};

/** Asks a model, and leaves out the pictures or tools that it is known not to take, or refuses now. */
async function askAble(app: App, connection: OpenConnection, request: Request): Promise<Completion> {
  const { offers, found: _found, inbox, teaches, ...asked } = request;
  const limits = limitsOf(app, connection, request);
  const messages = limits.blind ? withoutImages(asked.messages) : asked.messages;
  const tools = limits.no_tools ? [] : offers.map(({ offer }) => offer);
  const answer = await askWithinBudget(app, inbox, connection, { ...asked, messages, tools });
  const sent = { images: hasImages(messages), tools: tools.length > 0 };
  const again = learn(app, { answer, sent, limits, teaches, finder: { account: inbox.user_id, connection } });
  return again ? askAble(app, connection, request) : answer;
}

interface Lesson {
  answer: Completion;
  sent: { images: boolean; tools: boolean };
  limits: Limits;
  teaches: boolean;
  finder: Finder;
}

/** Notes what an answer shows about its model. Returns true if the same is to be asked again with less. */
function learn(app: App, { answer, sent, limits, teaches, finder }: Lesson): boolean {
  if (answer.ok) {
    if (sent.images) noteFact(app, finder, "sees");
    if (sent.tools) noteFact(app, finder, "calls");
    return false;
  }
  const refused = OTHER_FAULTS.has(answer.code) ? null : refusedIn(answer, sent);
  if (refused === null) return false;
  // A model that has taken pictures or tools before is not believed when it says that it never does.
  const lasting = isLasting(answer) && !isFound(app, finder, refused === "blind" ? "sees" : "calls");
  if (lasting && teaches) noteFact(app, finder, refused);
  limits[refused] = true;
  if (refused === "no_tools" && !lasting) limits.refused = answer.message;
  return true;
}

/** Returns what a refusal is about; null if it is about something else. */
function refusedIn({ message }: Failure, sent: Lesson["sent"]): "blind" | "no_tools" | null {
  if (sent.images && CANNOT_SEE.test(message)) return "blind";
  return sent.tools && CANNOT_CALL.test(message) ? "no_tools" : null;
}

function isLasting({ message }: Failure): boolean {
  return NEVER.test(message) && !THIS_ONE.test(message);
}

/** Returns what the account knows of a model's limits, together with what the run finds out. */
function limitsOf(
  app: App,
  connection: OpenConnection,
  { found, inbox }: Pick<Request, "found" | "inbox">,
): Limits {
  const key = keyOf(connection);
  const finder = { account: inbox.user_id, connection };
  const limits = found.get(key) ?? {
    blind: isFound(app, finder, "blind"),
    no_tools: isFound(app, finder, "no_tools"),
  };
  found.set(key, limits);
  return limits;
}

function keyOf({ id, base_url, model }: OpenConnection): string {
  return JSON.stringify([id, base_url, model]);
}

function tellLimits(
  run: Run,
  told: { model: string; limits: Limits; tools: OfferedTool[]; images: boolean },
): void {
  const { model, tools, images } = told;
  const { blind, no_tools, refused } = told.limits;
  const said: StepDraft[] = [];
  if (blind && images) {
    const files = run.input.images.map(({ filename }) => filename).join(", ");
    const to_strangers = `Not read: ${files}. Pictures are not seen here.`;
    said.push({
      ...warningStep(`Not read: ${files}. The model ${model} does not see pictures.`),
      to_strangers,
    });
  }
  // The tool that makes files is in every run: nobody misses it before asking for it.
  if (no_tools && tools.some(({ tool }) => tool.target !== FILES_TARGET)) {
    const output =
      refused === undefined
        ? `The model ${model} cannot use tools, so none were used.`
        : `The model ${model} did not take the tools, so none were used from there on. ${refused}`;
    said.push({ ...warningStep(output), to_strangers: "" });
  }
  for (const step of said) if (!run.steps.some(({ output }) => output === step.output)) run.steps.push(step);
}
