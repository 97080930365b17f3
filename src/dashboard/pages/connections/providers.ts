import type { LucideIcon } from "lucide-react";
import { Bot, Brain, Code, Cpu, FileText, FlaskConical, Plug, Server, Sheet } from "lucide-react";
import type { Connection } from "../../api/shapes.ts";

export interface Provider {
  kind: Connection["kind"];
  name: string;
  /** Its name behind "Connect", where that is another one. */
  object?: string;
  /** The label of a new connection to it, where that is not `name`; empty where each needs one of its own. */
  label?: string;
  category: Connection["category"];
  icon: LucideIcon;
  /** What it is, for somebody who has never heard of it. */
  words: string;
  /** Where its key comes from; none where it needs no key. */
  key?: { required: boolean; hint: string };
  /** What becomes of a token that somebody makes there by hand, where it does not last. */
  token?: string;
  base_url?: { required: boolean; placeholder: string; hint: string };
}

const OWN_SERVER_HINT =
  "An address in your own network has to be allowed by the server’s setting egress.allow.";
const hosted = (name: string, words: string, where: string): Omit<Provider, "kind"> => ({
  name,
  category: "llm",
  icon: Brain,
  words,
  key: { required: true, hint: `Get one at ${where}. It is kept encrypted and never shown again.` },
});

/** A row for each kind of connection. */
const BY_KIND: Record<Connection["kind"], Omit<Provider, "kind">> = {
  openai: hosted("OpenAI", "The GPT models.", "platform.openai.com"),
  anthropic: hosted("Anthropic", "The Claude models.", "console.anthropic.com"),
  google: hosted("Google Gemini", "The Gemini models.", "aistudio.google.com"),
  mistral: hosted("Mistral", "Models from Europe.", "console.mistral.ai"),
  groq: hosted("Groq", "Open models, very fast.", "console.groq.com"),
  openrouter: hosted("OpenRouter", "Many models behind one key.", "openrouter.ai"),
  ollama: {
    name: "Ollama",
    category: "llm",
    icon: Cpu,
    words: "Models on a machine of your own.",
    base_url: { required: false, placeholder: "http://localhost:11434", hint: OWN_SERVER_HINT },
  },
  openai_compatible: {
    name: "Other model server",
    object: "another model server",
    label: "OpenAI-compatible server",
    category: "llm",
    icon: Bot,
    words: "Anything that speaks the API of OpenAI: vLLM, LM Studio, llama.cpp …",
    key: { required: false, hint: "Only if that server asks for one." },
    base_url: { required: true, placeholder: "https://models.example.com/v1", hint: OWN_SERVER_HINT },
  },
  demo: {
    name: "Demo model",
    object: "the demo model",
    category: "llm",
    icon: FlaskConical,
    words: "No AI at all: answers with extracts of the mail, to see how everything works.",
  },
  mcp: {
    name: "Tool server (MCP)",
    object: "a tool server (MCP)",
    label: "",
    category: "mcp",
    icon: Server,
    words: "Tools that the model may use: calendars, tickets, databases …",
    key: { required: false, hint: "A token, if the server asks for one and you do not sign in there." },
    base_url: {
      required: true,
      placeholder: "https://tools.example.com/mcp",
      hint: OWN_SERVER_HINT,
    },
  },
  notes: {
    name: "Notes (Notion)",
    category: "integration",
    icon: FileText,
    words: "Reads and writes pages of your workspace.",
    key: { required: true, hint: "An integration token, if you do not sign in." },
  },
  "codehost-a": {
    name: "GitHub",
    category: "integration",
    icon: Code,
    words: "Looks into repositories and files issues.",
    key: { required: true, hint: "A personal access token, if you do not sign in." },
  },
  "codehost-b": {
    name: "GitLab",
    category: "integration",
    icon: Code,
    words: "Looks into projects and files issues.",
    key: { required: true, hint: "A personal access token, if you do not sign in." },
  },
  sheets: {
    name: "Google Sheets",
    category: "integration",
    icon: Sheet,
    words: "Reads tables and adds rows.",
    key: { required: true, hint: "An access token, to try it out: Google ends it after an hour." },
    token: "A token that you make there works for an hour, and then has to be replaced.",
  },
};

export const PROVIDERS: Provider[] = Object.entries(BY_KIND).map(([kind, about]) =>
  Object.assign({ kind: kind as Connection["kind"] }, about),
);

export const CATEGORIES: [Connection["category"], string, string][] = [
  ["llm", "Models", "Read the mail and write the answer. You need one."],
  ["mcp", "Tool servers", "Give the model tools of your own."],
  ["integration", "Services", "Connect an account, and the model can work there for you."],
];

/** Such as "Connect Ollama" and "Connect a tool server (MCP)". */
export function connectWords({ name, object = name }: Provider): string {
  return `Connect ${object}`;
}

export function providerOf(kind: string): Provider | undefined {
  return PROVIDERS.find((provider) => provider.kind === kind);
}

export function iconOf(kind: string): LucideIcon {
  return providerOf(kind)?.icon ?? Plug;
}
