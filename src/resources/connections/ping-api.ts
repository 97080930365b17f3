import { member } from "../../lib/foreign-json.ts";
import type { ModelKind } from "../../ai/providers.ts";
import { INTEGRATIONS } from "../../config/integrations.ts";
import { type ConnectionKind, isModelKind } from "./kinds.ts";
import {
  ask,
  type Finding,
  NOTHING_FOUND,
  notUnderstood,
  PingFault,
  type PingTarget,
  readJson,
} from "./ping.ts";

const MAX_NAME_CHARS = 200;

/** The request of a provider's own interface that tells most about a credential and spends nothing. */
export interface ApiPing {
  /** The end of a base URL that belongs to another interface of the provider, or to `path`, and is left out. */
  without?: RegExp;
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** The header that takes the credential; without it, the credential is a bearer token (RFC 6750). */
  key_header?: string;
  read: (answer: unknown) => Finding | undefined;
  /** A second request, for a provider that answers the first one to everybody. */
  checked_at?: { path: string; body?: string };
  /** Set if its list is complete; at other providers a model may be there that the list has under another name. */
  lists_all?: true;
}

const OPENAI_LIKE: ApiPing = { path: "/models", read: (answer) => models(dataOf(answer), "id") };

/**
 * A call without a message, which is refused before anything is spent. Many servers list their models for everybody
 * (llama.cpp, NVIDIA, Hugging Face), so that only a call shows what they make of a key.
 */
const EMPTY_CALL = { path: "/chat/completions", body: JSON.stringify({ messages: [], max_tokens: 1 }) };

/** Providers that are asked otherwise than OpenAI. */
const MODEL_PINGS: Partial<Record<ModelKind, ApiPing>> = {
  openrouter: { ...OPENAI_LIKE, checked_at: { path: "/key" } },
  openai_compatible: { ...OPENAI_LIKE, checked_at: EMPTY_CALL },
  anthropic: {
    ...OPENAI_LIKE,
    query: { limit: "1000" },
    headers: { "anthropic-version": "2023-06-01" },
    key_header: "x-api-key",
  },
  google: {
    without: /\/openai$/,
    path: "/models",
    query: { pageSize: "1000" },
    key_header: "x-goog-api-key",
    read: (answer) => models(member(answer, "models"), "name"),
  },
  ollama: {
    without: /\/v1$/,
    path: "/api/tags",
    lists_all: true,
    read: (answer) => models(member(answer, "models"), "name"),
  },
};

/** The request by which a connection of a kind is tested. */
export function apiPingOf(kind: Exclude<ConnectionKind, "demo" | "mcp">): ApiPing {
  if (isModelKind(kind)) return MODEL_PINGS[kind] ?? OPENAI_LIKE;
  const { account: names, ...ping } = INTEGRATIONS[kind].ping;
  return { ...ping, read: (answer) => account(names.map((name) => member(answer, name))) };
}

export async function pingApi(target: PingTarget, ping: ApiPing): Promise<Finding> {
  const response = await askAt(target, ping, ping);
  const finding = ping.read(await readJson(target, response));
  if (finding === undefined)
    throw notUnderstood(target, response.status, "JSON that is not the expected list or account");
  if (ping.checked_at !== undefined) await checkKey(target, ping, ping.checked_at);
  return finding;
}

/**
 * Checks the key by a second request. A server that stands in for the provider may lack its path, or mislike its body,
 * so only what is said about the account counts.
 */
async function checkKey(target: PingTarget, ping: ApiPing, second: Asked): Promise<void> {
  try {
    await readJson(target, await askAt(target, ping, second));
  } catch (error) {
    if (!(error instanceof PingFault) || error.fault.code !== "bad_response") throw error;
  }
}

/** Whether the provider knows a model, found out without spending anything. */
export async function isModelThere(target: PingTarget, ping: ApiPing, model: string): Promise<boolean> {
  // Dots alone would change the path.
  if (ping.lists_all || /^\.{1,2}$/.test(model)) return false;
  try {
    await readJson(target, await askAt(target, ping, { path: `${ping.path}/${encodeURIComponent(model)}` }));
    return true;
  } catch (error) {
    if (!(error instanceof PingFault) || !isAnswer(error)) throw error;
    return false;
  }
}

/** Whether an answer tells about the model: a server that is down, or that limits requests, does not. */
function isAnswer({ fault: { code, http_status: status } }: PingFault): boolean {
  return status !== null && status < 500 && code !== "rate_limited";
}

type Asked = NonNullable<ApiPing["checked_at"]>;

function askAt(target: PingTarget, ping: ApiPing, { path, body }: Asked): Promise<Response> {
  const url = new URL(target.base_url);
  url.pathname = url.pathname.replace(/(?<!\/)\/+$/, "").replace(ping.without ?? "", "") + path;
  for (const [name, value] of Object.entries(ping.query ?? {})) url.searchParams.set(name, value);
  const credential =
    ping.key_header === undefined
      ? { authorization: `Bearer ${target.credential}` }
      : { [ping.key_header]: target.credential };
  const headers = ping.headers ?? {};
  if (body === undefined) return ask(target, { url, credential, headers });
  const typed = { ...headers, "content-type": "application/json" };
  return ask(target, { url, credential, headers: typed, method: "POST", body });
}

/** The list in an answer: most servers wrap it, some send it as it is. */
function dataOf(answer: unknown): unknown {
  return Array.isArray(answer) ? answer : member(answer, "data");
}

function models(list: unknown, name: "id" | "name"): Finding | undefined {
  if (!Array.isArray(list)) return undefined;
  const names = list
    .map((one) => member(one, name))
    .filter((one) => typeof one === "string")
    .map((one) => one.replace(/^models\//, ""))
    .filter((one) => one.length <= MAX_NAME_CHARS);
  const detail = names.length === 1 ? "1 model visible" : `${names.length} models visible`;
  return { ...NOTHING_FOUND, detail, models: names };
}

function account(names: unknown[]): Finding | undefined {
  const name = names.find((one) => typeof one === "string" && one !== "");
  if (typeof name !== "string") return undefined;
  const shown = name.slice(0, MAX_NAME_CHARS);
  return { ...NOTHING_FOUND, detail: `Signed in as ${shown}`, account: shown };
}
