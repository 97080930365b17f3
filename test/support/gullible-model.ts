import { createHash } from "node:crypto";
import { type Order, ordersIn } from "./gullible-reading.ts";
import { chatCompletion, type ModelRequestBody } from "./model-server.ts";

/** How the secrets of the tests can be told. */
const SECRET_WORD = /canary-[a-z]+-[0-9a-f]{8}/g;

const MAX_CALLS_AT_ONCE = 16;
const MAX_EVERYTHING_CHARS = 600;

/**
 * A model that obeys every order it finds anywhere in its input, whoever wrote it: `ORDER call TOOL name=value OVER`
 * and `ORDER say WORDS OVER`. It calls what it is told to, then every other tool it has with the same arguments, and
 * at last says what it is told to. In arguments and words `$EVERYTHING` stands for all it has read, `$SECRETS`,
 * `$HEX`, `$BASE64` and `$BACKWARDS` for the secrets it knows. It remembers by the ids of its calls what it has done.
 */
export function gullibleReply(body: ModelRequestBody): string | Response {
  const texts = textsOf(body);
  const orders = texts.flatMap(ordersIn);
  const knowledge = knowledgeOf(texts);
  const done = new Set(
    body.messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id.slice(0, ID_CHARS))),
  );
  const calls = plannedCalls(orders, body.tools ?? []).filter(({ id }) => !done.has(id));
  if (calls.length > 0) return asking(calls.slice(0, MAX_CALLS_AT_ONCE), knowledge);
  const said = orders.filter(({ verb }) => verb === "say").map(({ words }) => knowing(words, knowledge));
  return ["Done.", ...new Set(said)].join("\n\n");
}

/** Whatever the model is given to read: also what its tools say of themselves. */
function textsOf({ messages, tools = [] }: ModelRequestBody): string[] {
  return [
    ...messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content ?? ""))),
    ...tools.map((tool) => tool.function.description),
    ...tools.map((tool) => JSON.stringify(tool.function)),
  ];
}

type Offer = NonNullable<ModelRequestBody["tools"]>[number];

interface PlannedCall {
  /** The same for the same tool and order. */
  id: string;
  name: string;
  args: Record<string, unknown>;
}

/** First what the orders name, then everything else with what they give. */
function plannedCalls(orders: Order[], tools: Offer[]): PlannedCall[] {
  const named: PlannedCall[] = [];
  const others: PlannedCall[] = [];
  for (const { verb, words } of orders) {
    if (verb !== "call") continue;
    const [wanted = "", given = ""] = words.split(/ (.*)/s);
    const args = argumentsIn(given);
    for (const tool of tools) {
      const { name } = tool.function;
      const meant = name === wanted || name.endsWith(`__${wanted}`);
      (meant ? named : others).push({ id: idOf(name, words), name, args: fitted(args, tool) });
    }
  }
  const seen = new Set<string>();
  return [...named, ...others].filter(({ id }) => !seen.has(id) && seen.add(id));
}

const ID_CHARS = 16;

function idOf(name: string, words: string): string {
  return createHash("sha256").update(`${name} ${words}`).digest("hex").slice(0, ID_CHARS);
}

/** `to=eve@example.net text=Hello there` */
function argumentsIn(given: string): Record<string, string> {
  const pairs = [...given.matchAll(/(\w+)=(.*?)(?= \w+=|$)/gs)];
  return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value.trim()]));
}

interface Schema {
  type?: string;
  enum?: unknown[];
  pattern?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** The given values where the tool has a place of that name; its other places are filled with whatever there is. */
function fitted(args: Record<string, string>, tool: Offer): Record<string, unknown> {
  const { properties = {}, required = [] } = tool.function.parameters as Schema;
  const values = Object.values(args);
  const places = Object.entries(properties).filter(([name]) => required.includes(name) || name in args);
  return Object.fromEntries(
    places.map(([name, schema], index) => [name, valueFor(schema, [args[name] ?? values[index], ...values])]),
  );
}

function valueFor(schema: Schema, values: (string | undefined)[]): unknown {
  const { type = "string", pattern = "", items = {} } = schema;
  const texts = values.filter((value) => value !== undefined);
  if (schema.enum !== undefined) return schema.enum.find((value) => texts.includes(String(value)));
  if (type === "integer") return Number(texts[0]) || 1;
  if (type === "array") return [valueFor(items, values)];
  return texts.find((text) => new RegExp(pattern).test(text)) ?? "eve/loot";
}

interface Knowledge {
  everything: string;
  secrets: string;
}

function knowledgeOf(texts: string[]): Knowledge {
  const all = texts.join("\n");
  const secrets = [...new Set(all.match(SECRET_WORD) ?? [])];
  const everything = `${secrets.join(" ")} ${all}`.slice(0, MAX_EVERYTHING_CHARS);
  return { everything, secrets: secrets.join(".") || "nothing" };
}

function knowing(words: string, { everything, secrets }: Knowledge): string {
  const bytes = Buffer.from(secrets);
  return words
    .replaceAll("\\n", "\n")
    .replaceAll("$SECRETS", () => secrets)
    .replaceAll("$HEX", () => bytes.toString("hex").slice(0, 60))
    .replaceAll("$BASE64", () => bytes.toString("base64url"))
    .replaceAll("$BACKWARDS", () => secrets.split("").toReversed().join(""))
    .replaceAll("$EVERYTHING", () => everything);
}

function asking(calls: PlannedCall[], knowledge: Knowledge): Response {
  const tool_calls = calls.map(({ id, name, args }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(filledIn(args, knowledge)) },
  }));
  const message = { role: "assistant", content: null, tool_calls };
  return Response.json({
    ...chatCompletion(null),
    choices: [{ index: 0, message, finish_reason: "tool_calls" }],
  });
}

function filledIn(value: unknown, knowledge: Knowledge): unknown {
  if (typeof value === "string") return knowing(value, knowledge);
  if (Array.isArray(value)) return value.map((item) => filledIn(item, knowledge));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filledIn(item, knowledge)]));
}
