import { urlOf } from "../lib/web-address.ts";
import type { HOSTED_KINDS } from "../config/schema.ts";

export type ModelKind = (typeof HOSTED_KINDS)[number] | "ollama" | "openai_compatible" | "demo";

/** A model as stored in a connection, with the key opened. Empty `base_url` or `model` means the kind's default. */
export interface ModelConnection {
  id: string;
  kind: ModelKind;
  base_url: string;
  api_key: string;
  model: string;
  headers?: Record<string, string>;
}

export interface ModelKindInfo {
  label: string;
  category: "llm";
  /** The URL of its OpenAI-compatible API; null where the connection must give it, or none is needed. */
  base_url: string | null;
  /** Empty where each connection must name one. */
  default_model: string;
  needs_credential: boolean;
  needs_base_url: boolean;
  /** The parameter's name: newer OpenAI models reject the one that all others use. */
  max_tokens_field: "max_tokens" | "max_completion_tokens";
}

/** Every kind of model connection. Default models are the providers' moving aliases where there is one. */
export const MODEL_KINDS: Record<ModelKind, ModelKindInfo> = {
  openai: {
    ...hosted("OpenAI", "https://api.openai.com/v1", "gpt-5.4-mini"),
    max_tokens_field: "max_completion_tokens",
  },
  anthropic: hosted("Anthropic", "https://api.anthropic.com/v1", "claude-sonnet-5"),
  google: hosted(
    "Google Gemini",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "gemini-flash-latest",
  ),
  mistral: hosted("Mistral", "https://api.mistral.ai/v1", "mistral-small-latest"),
  groq: hosted("Groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
  openrouter: hosted("OpenRouter", "https://openrouter.ai/api/v1", "openrouter/auto"),
  ollama: { ...hosted("Ollama", "http://localhost:11434/v1", "llama3.2"), needs_credential: false },
  openai_compatible: {
    ...hosted("OpenAI-compatible server", null, ""),
    needs_credential: false,
    needs_base_url: true,
  },
  demo: { ...hosted("Demo model (no AI)", null, "demo"), needs_credential: false },
};

/** Returns the base URL and model of a connection, with the defaults of its kind. */
export function endpointOf(connection: Pick<ModelConnection, "kind" | "base_url" | "model">): {
  base_url: string;
  model: string;
} {
  const kind = MODEL_KINDS[connection.kind];
  return {
    base_url: withPath(connection.base_url, kind.base_url ?? ""),
    model: connection.model === "" ? kind.default_model : connection.model,
  };
}

/** Returns the label of a kind, with the host where the label does not tell it, as for one of one's own machine. */
export function nameAt(kind: { label: string; base_url: string | null }, base_url: string): string {
  const own = kind.base_url ?? "";
  const url = urlOf(base_url || own);
  const is_known = (base_url || own) === own && !own.startsWith("http://");
  return url === null || is_known ? kind.label : `${kind.label} at ${url.host}`;
}

/** Adds the path of the kind's default URL to a base URL without one. */
function withPath(base_url: string, own: string): string {
  const url = urlOf(base_url);
  if (url === null || url.pathname !== "/" || own === "") return base_url === "" ? own : base_url;
  url.pathname = new URL(own).pathname;
  return url.href;
}

function hosted(label: string, baseUrl: string | null, defaultModel: string): ModelKindInfo {
  return {
    label,
    category: "llm",
    base_url: baseUrl,
    default_model: defaultModel,
    needs_credential: true,
    needs_base_url: false,
    max_tokens_field: "max_tokens",
  };
}
