import { isIP } from "node:net";
import type { Values } from "../config/schema.ts";
import { asMillionths } from "../lib/money.ts";
import { urlOf } from "../lib/web-address.ts";
import { isPublicAddress } from "../net/guarded-fetch.ts";
import type { ChatMessage, ToolOffer } from "./llm-messages.ts";
import { endpointOf, type ModelConnection } from "./providers.ts";

type Costs = Values["costs"];

/** What a provider says that it read and wrote for an answer. */
export interface Bill {
  input_tokens: number;
  output_tokens: number;
  /** Those of the input that it had kept from before. */
  cached_tokens?: number;
  /** What it says that the answer has cost, in its own currency. */
  said_cost?: number;
  /** What the answer has cost, in millionths of the configured currency, once that was worked out. */
  cost?: number;
}

/** Money per million tokens, which is the same number as millionths of it per token. */
interface Price {
  input: number;
  output: number;
  cached_input: number;
}

const FREE: Price = { input: 0, output: 0, cached_input: 0 };

/** The most bytes of text that a token stands for where the estimate shall not be too low; English has about four. */
const BYTES_PER_TOKEN = 3;
/** What providers count for a large picture, at most. */
const IMAGE_TOKENS = 2_000;
/** Tokens of an answer that an estimate reckons with where a request sets no limit to them. */
export const ASSUMED_OUTPUT_TOKENS = 4_096;

/** OpenRouter says itself what an answer has cost, in US dollars. */
function billsItself({ currency }: Costs, { kind }: Pick<ModelConnection, "kind">): boolean {
  return kind === "openrouter" && currency === "USD";
}

type Asked = Pick<ModelConnection, "kind" | "base_url" | "model">;

/** What a model costs: money per token, nothing, what its provider will say, or null where nobody knows. */
export function priceOf(costs: Costs, connection: Asked): Price | "said" | null {
  const { model, base_url } = endpointOf(connection);
  const is_local = connection.kind === "demo" || connection.kind === "ollama" || isLocal(base_url);
  const [best] = Object.values(costs.prices)
    // A price for every kind is one of the providers that are paid: what runs here has one only if its kind is named.
    .filter(({ kind }) => (kind === "" ? !is_local : kind === connection.kind))
    .filter((price) => isNamed(price.model, model))
    .toSorted((one, other) => rank(other) - rank(one));
  if (best) return { ...best, cached_input: best.cached_input ?? best.input };
  if (billsItself(costs, connection)) return "said";
  return is_local ? FREE : null;
}

/** The longest name wins, a whole one before one that goes on, and one with a kind before one for all. */
function rank({ model, kind }: { model: string; kind: string }): number {
  const is_whole = !model.endsWith("*");
  return 4 * (is_whole ? model.length : model.length - 1) + (is_whole ? 2 : 0) + (kind === "" ? 0 : 1);
}

function isNamed(pattern: string, model: string): boolean {
  return pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern;
}

/** Whether an address is one of this machine or its network: such names are in no public DNS. */
function isLocal(base_url: string): boolean {
  const host = urlOf(base_url)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  if (isIP(host) !== 0) return !isPublicAddress(host);
  return /^[^.]+$|\.(?:localhost|local|internal|lan|home\.arpa)$/.test(host);
}

/** What an answer has cost, in millionths; null where nobody knows. What the provider itself says wins. */
export function costOf(costs: Costs, connection: Asked, bill: Bill | undefined): number | null {
  const price = priceOf(costs, connection);
  if (bill === undefined) return price === FREE ? 0 : null;
  if (bill.said_cost !== undefined && billsItself(costs, connection)) return asMillionths(bill.said_cost);
  if (price === null || price === "said") return null;
  const cached = Math.min(bill.cached_tokens ?? 0, bill.input_tokens);
  const read = (bill.input_tokens - cached) * price.input + cached * price.cached_input;
  return Math.round(read + bill.output_tokens * price.output);
}

interface Request {
  messages: ChatMessage[];
  tools?: ToolOffer[];
  max_tokens?: number;
}

/** What a request may cost, in millionths, by the length of what is sent and the most that may be answered. */
export function estimateOf(price: Price | "said", { messages, tools = [], max_tokens }: Request): number {
  if (price === "said") return 0;
  const texts = messages.map((message) => bytesOf(message)).reduce((sum, bytes) => sum + bytes, 0);
  const offers = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools));
  const images = messages.flatMap((message) => (message.role === "user" ? (message.images ?? []) : []));
  const read = Math.ceil((texts + offers) / BYTES_PER_TOKEN) + images.length * IMAGE_TOKENS;
  return Math.ceil(read * price.input + (max_tokens ?? ASSUMED_OUTPUT_TOKENS) * price.output);
}

function bytesOf(message: ChatMessage): number {
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
  return (
    Buffer.byteLength(message.content) + calls.reduce((sum, { arguments: args }) => sum + args.length, 0)
  );
}
