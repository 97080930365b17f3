import type OpenAI from "openai";

/** A tool call requested by a model. */
export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as JSON, as the model wrote them. */
  arguments: string;
  /** Opaque data that the provider wants back with the call: one signs its calls. */
  extra_content?: object;
}

/** The description of a tool for a model. */
export interface ToolOffer {
  /** The tool's name: 1 to 64 of `[A-Za-z0-9_-]`, unique in one request. */
  name: string;
  description: string;
  /** The arguments, as the JSON Schema of an object. */
  parameters: Record<string, unknown>;
}

export interface ModelImage {
  content_type: string;
  bytes: Uint8Array;
}

export type ChatMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: string; images?: ModelImage[] }
  | { role: "assistant"; content: string; tool_calls?: ToolCall[] }
  | { role: "tool"; content: string; tool_call_id: string };

type WireMessage = OpenAI.ChatCompletionMessageParam;

/** Returns messages in the form of the chat completions interface. */
export function toWire(messages: ChatMessage[]): WireMessage[] {
  return messages.map((message) => {
    if (message.role === "user") return userMessage(message);
    if (message.role === "assistant") return assistantMessage(message);
    return message;
  });
}

/**
 * Returns tools in the form of the chat completions interface; no member at all when there are none, because some
 * servers refuse an empty list.
 */
export function toolsToWire(tools: ToolOffer[] = []): { tools?: OpenAI.ChatCompletionTool[] } {
  if (tools.length === 0) return {};
  return { tools: tools.map((offer) => ({ type: "function", function: { ...offer } })) };
}

export function hasImages(messages: ChatMessage[]): boolean {
  return messages.some((message) => message.role === "user" && (message.images ?? []).length > 0);
}

/**
 * Returns messages in a form for another model: with ids that every interface takes, and without the first provider's
 * own data.
 */
export function withOwnIds(messages: ChatMessage[]): ChatMessage[] {
  const ids = new Map<string, string>();
  let count = 0;
  return messages.map((message) => {
    if (message.role === "tool")
      return { ...message, tool_call_id: ids.get(message.tool_call_id) ?? message.tool_call_id };
    if (message.role !== "assistant" || message.tool_calls === undefined) return message;
    const tool_calls = message.tool_calls.map((call) => {
      const id = plainId(count++);
      ids.set(call.id, id);
      return { id, name: call.name, arguments: call.arguments };
    });
    return { ...message, tool_calls };
  });
}

/** Returns an id of nine letters and digits: one provider accepts nothing else. */
export function plainId(index: number): string {
  return `call${String(index).padStart(5, "0")}`;
}

export function withoutImages(messages: ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    message.role === "user" ? { role: "user", content: message.content } : message,
  );
}

function userMessage({ content, images = [] }: ChatMessage & { role: "user" }): WireMessage {
  if (images.length === 0) return { role: "user", content };
  const parts = images.map(({ content_type, bytes }) => ({
    type: "image_url" as const,
    image_url: { url: `data:${content_type};base64,${Buffer.from(bytes).toString("base64")}` },
  }));
  return { role: "user", content: [{ type: "text", text: content }, ...parts] };
}

function assistantMessage({ content, tool_calls = [] }: ChatMessage & { role: "assistant" }): WireMessage {
  if (tool_calls.length === 0) return { role: "assistant", content };
  const calls = tool_calls.map(({ id, name, arguments: args, ...extra }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: args },
    ...extra,
  }));
  return { role: "assistant", content: content === "" ? null : content, tool_calls: calls };
}
