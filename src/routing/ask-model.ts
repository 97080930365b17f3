import { type Completion, complete } from "../ai/llm.ts";
import { type ChatMessage, hasImages, withOwnIds, withoutImages } from "../ai/llm-messages.ts";
import type { App } from "../app.ts";
import { type OpenConnection, openConnectionOf } from "../connections/connections.ts";
import { messageOf } from "../errors.ts";
import type { SafeFetch } from "../lib/net.ts";
import type { Run } from "./close.ts";
import { FILES_TARGET } from "../ai/guard.ts";
import { warning } from "./steps.ts";
import type { OfferedTool } from "./toolbox.ts";
import type { Talk } from "./tool-loop.ts";
import type { Question } from "./work.ts";

type Failure = Completion & { ok: false };

/** How models and their servers say that they cannot see, or cannot call anything. */
const CANNOT_SEE = /\b(images?|image_url|vision|multi-?modal|content (type|part|format)s?)\b/i;
const CANNOT_CALL = /\b(tools?|tool_choice|functions?|function[ _-]?call(s|ing)?)\b/i;
/** That a model never takes them; else it may be these pictures or these tools, which somebody else made. */
const NEVER = /\b(un)?support|\benable/i;
const THIS_ONE = /schema|propert|function '|invalid|\bvalid|format|too (large|many|long|small)|\bsizes?\b/i;
/** What has nothing to do with what was sent. */
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
]);

/** What a model was found not to take. */
interface Limits {
  blind: boolean;
  no_tools: boolean;
  /** What it said against these tools, if it may take others. */
  refused?: string;
}

/**
 * Asks the connection and, when it does not answer, its fallback from then on: once, and no fallback of that one. A
 * model that takes no pictures or no tools is asked without them, and the sender is told.
 */
export function modelAsker(app: App, run: Run, question: Question & { tools: OfferedTool[] }): Talk["ask"] {
  const { signal, tools } = question;
  const found = new Map<string, Limits>();
  const request = { ...requestOf(run, question), found };
  let connection = question.connection;
  let has_fallback = true;
  const ask = async (talk: ChatMessage[], offers: OfferedTool[]): Promise<Completion> => {
    const messages = connection === question.connection ? talk : withOwnIds(talk);
    const answer = await askAble(app, connection, { ...request, messages, offers });
    if (answer.ok || signal.aborted || !has_fallback) return answer;
    has_fallback = false;
    const fallback = await fallbackOf(app, run, connection);
    const second =
      fallback && (await askAble(app, fallback, { ...request, messages: withOwnIds(talk), offers }));
    if (!fallback || !second?.ok) return answer;
    run.steps.push(
      warning(`The model ${connection.model} did not answer; ${fallback.model} did in its place.`),
    );
    connection = fallback;
    return second;
  };
  return async (messages, may) => {
    const first = await ask(messages, may.tools ? tools : []);
    // Some interfaces take no talk with calls in it without the tools that were called.
    const wants_tools = !may.tools && !first.ok && !OTHER_FAULTS.has(first.code);
    const answer = wants_tools && CANNOT_CALL.test(first.message) ? await ask(messages, tools) : first;
    if (answer.ok)
      tellLimits(run, {
        model: connection.model,
        limits: limitsOf(app, found, connection),
        tools,
        images: hasImages(messages),
      });
    return answer;
  };
}

/** What is asked of a model, whichever it is. */
function requestOf(run: Run, { asked, signal }: Question) {
  const { max_tokens, temperature } = asked.settings;
  const brief = {
    instruction: asked.instruction,
    content: run.input.content,
    attachments: run.input.files.map(({ filename }) => filename),
    contexts: asked.contexts.map(({ title }) => title),
  };
  return {
    brief,
    signal,
    ...(max_tokens === null ? {} : { max_tokens }),
    ...(temperature === null ? {} : { temperature }),
  };
}

type Request = ReturnType<typeof requestOf> & {
  messages: ChatMessage[];
  offers: OfferedTool[];
  /** What this run has found out, by model. */
  found: Map<string, Limits>;
};

/** Without what the model is known, or now says, not to take. */
async function askAble(app: App, connection: OpenConnection, request: Request): Promise<Completion> {
  const { offers, found, ...asked } = request;
  const limits = limitsOf(app, found, connection);
  const messages = limits.blind ? withoutImages(asked.messages) : asked.messages;
  const tools = limits.no_tools ? [] : offers.map(({ offer }) => offer);
  const { trusted, fallback_connection_id: _, ...model } = connection;
  const fetch = trusted ? operatorFetch : app.fetch;
  const answer = await complete({ ...asked, connection: model, messages, tools, fetch });
  if (answer.ok || OTHER_FAULTS.has(answer.code)) return answer;
  const learnt = learntFrom(answer, { images: hasImages(messages), tools: tools.length > 0 });
  if (learnt === null) return answer;
  if (learnt.lasting) remember(app, connection, learnt.limits);
  Object.assign(limits, learnt.limits);
  return askAble(app, connection, request);
}

/** What a refusal says of the model; null if it is about something else. */
function learntFrom(
  { message }: Failure,
  asked: { images: boolean; tools: boolean },
): { limits: Partial<Limits>; lasting: boolean } | null {
  const lasting = NEVER.test(message) && !THIS_ONE.test(message);
  if (asked.images && CANNOT_SEE.test(message)) return { limits: { blind: true }, lasting };
  if (!asked.tools || !CANNOT_CALL.test(message)) return null;
  return { limits: lasting ? { no_tools: true } : { no_tools: true, refused: message }, lasting };
}

const known = new WeakMap<App, Map<string, Partial<Limits>>>();

/** What is known of a model, and what the run finds out besides. */
function limitsOf(app: App, found: Map<string, Limits>, connection: OpenConnection): Limits {
  const key = keyOf(connection);
  const limits = found.get(key) ?? { blind: false, no_tools: false, ...known.get(app)?.get(key) };
  found.set(key, limits);
  return limits;
}

/** Found out once, as long as the server runs. */
function remember(app: App, connection: OpenConnection, learnt: Partial<Limits>): void {
  const all = known.get(app) ?? new Map<string, Partial<Limits>>();
  const key = keyOf(connection);
  known.set(app, all.set(key, { ...all.get(key), ...learnt }));
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
  const sentences = [
    ...(blind && images
      ? [
          `Not read: ${run.input.images.map(({ filename }) => filename).join(", ")}. The model ${model} does not see pictures.`,
        ]
      : []),
    // Nobody misses the tool that makes files before it was asked for.
    ...(no_tools && tools.some(({ tool }) => tool.target !== FILES_TARGET)
      ? [
          refused === undefined
            ? `The model ${model} cannot use tools, so none were used.`
            : `The model ${model} did not take the tools, so none were used from there on. ${refused}`,
        ]
      : []),
  ];
  for (const sentence of sentences)
    if (!run.steps.some(({ output }) => output === sentence)) run.steps.push(warning(sentence));
}

async function fallbackOf(
  app: App,
  { inbox }: Run,
  { fallback_connection_id: default_connection_id }: OpenConnection,
): Promise<OpenConnection | undefined> {
  if (default_connection_id === null) return undefined;
  try {
    return await openConnectionOf(app, { user_id: inbox.user_id, default_connection_id });
  } catch (error) {
    // What the run then fails with is the answer of the first one; that this one cannot be opened is for the log.
    app.log.warn({ err: messageOf(error) }, "the fallback connection cannot be used");
    return undefined;
  }
}

/** To wherever the operator's own connection points; the signal is the only clock, as in `app.fetch`. */
const operatorFetch: SafeFetch = (url, init) => fetch(url, { ...init, timeout: false });
