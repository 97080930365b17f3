import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { member } from "../lib/foreign-json.ts";
import { headOf } from "../lib/text-length.ts";
import type { ListedTool } from "./mcp-calls.ts";

const MAX_NAME_CHARS = 200;
const MAX_DESCRIPTION_CHARS = 1_000;
const MAX_SCHEMA_CHARS = 16_384;
const SCHEMA_LEFT_OUT = "(What it takes is not shown: its description is too long.)";
/** A tool's name, without invisible characters. */
const NAME = /^[^\p{C}\p{Z}][^\p{C}]*$/u;

/** The member that holds the original result. */
const AS_SENT = "mailwright/as-sent";
/** An object that the library accepts as an empty page of tools, and as the result of a call (MCP 2026-07-28). */
const EMPTY = { tools: [], ttlMs: 0, cacheScope: "private", content: [] };

/**
 * Hides results from the library behind empty ones: it rejects a whole page of tools if one is invalid, and for many
 * invalid parts it lists every error. Affects listeners that are set later.
 */
export function setResultsAside(transport: Transport): void {
  let listener = transport.onmessage;
  Object.defineProperty(transport, "onmessage", {
    get: () => listener,
    set: (next: Transport["onmessage"]) => {
      listener = next && ((message, extra) => next(withResultAside(message), extra));
    },
  });
}

export function asSent(result: unknown): unknown {
  return member(result, AS_SENT);
}

function withResultAside(message: JSONRPCMessage): JSONRPCMessage {
  const result = member(message, "result");
  const is_page = Array.isArray(member(result, "tools"));
  const is_call = ["content", "structuredContent"].some((name) => member(result, name) !== undefined);
  if (!is_page && !is_call) return message;
  const type = member(result, "resultType");
  const seen = { ...EMPTY, ...(type === undefined ? {} : { resultType: type }), [AS_SENT]: result };
  return { ...message, result: seen };
}

/** Returns a tool as its server describes it, cut to what can be offered; undefined if it cannot be. */
export function listedTool(described: unknown): ListedTool | undefined {
  const name = member(described, "name");
  const schema = schemaOf(member(described, "inputSchema"));
  if (typeof name !== "string" || name.length > MAX_NAME_CHARS || !NAME.test(name) || !schema)
    return undefined;
  const hints = member(described, "annotations");
  const words = textOf(member(described, "description")) || textOf(member(described, "title"));
  const hint = member(hints, "destructiveHint");
  const destructive = hint === true;
  const read_only = member(hints, "readOnlyHint") === true && !destructive;
  return {
    name,
    description: [headOf(words, MAX_DESCRIPTION_CHARS), schema.note].filter(Boolean).join(" "),
    parameters: schema.parameters,
    // A tool that claims both counts as destructive.
    read_only,
    destructive,
    may_destroy: destructive || (!read_only && hint !== false && saysDestroys(name)),
    adds: saysAdds(name, hint),
  };
}

/** Without the hint of its author the name of a tool tells whether it only adds (MCP: destructiveHint). */
function saysAdds(name: string, hint: unknown): boolean {
  return hint === undefined ? ADDS.test(inWords(name)) && !saysDestroys(name) : hint === false;
}

/** Most authors describe their tools by no hint at all, and then the name is all that tells of it. */
function saysDestroys(name: string): boolean {
  const words = inWords(name);
  // One that looks for something may do more with what it finds: `find_one_and_delete`.
  const done = LOOKS.test(words) ? words.split(JOINS).slice(1) : [words];
  return done.some((part) => DESTROYS.test(part) || DESTROYS_ELSEWHERE.test(part));
}

function inWords(name: string): string {
  return name.replaceAll(/([a-z])([A-Z])|([A-Z])([A-Z][a-z])/g, "$1$3_$2$4");
}

const DESTROYS =
  /(?:^|[^a-z])(?:(?:delete|remove|drop|purge|trash|wipe|erase|destroy|clear|empty|flush|clean|kill|reset|discard|cancel|revoke|terminate|disable)(?:_?(?:all|db|up))?|deletion|removal|truncate|overwrite|rm|[hz]?del|getdel|[lsz]rem|unlink|prune|uninstall|expunge|shred|nuke|obliterate|forget|revert|rollback|roll_back|deactivate|undeploy|deprovision|decommission|force_?push|close_?account|format_?(?:disk|drive|volume))(?![a-z])/i;
/** Beginnings of the same words in other languages. */
const DESTROYS_ELSEWHERE =
  /(?:^|[^a-z])(?:l(?:ö|oe)sch|entfern|stornier|vernicht|supprim|effac|annul|elimin|borra|vacia|apaga|exclui|cancell?a(?:re?)?(?![a-z])|rimuov|svuota|verwijder|radera|ta_bort|slette|usu[nń]|удал|очист)|删除|清空|削除|삭제/iu;
const ADDS = /^(?:add|append|create|insert|log|make|new|note|record|remember)(?![a-z])/i;
const LOOKS = /^(?:list|get|read|search|find|show|count)(?![a-z])/i;
const JOINS = /[^a-z](?:and|or|then|one)(?![a-z])/i;

function schemaOf(schema: unknown): { parameters: Record<string, unknown>; note: string } | undefined {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return undefined;
  const { type } = schema as { type?: unknown };
  if (type !== undefined && type !== "object") return undefined;
  return JSON.stringify(schema).length > MAX_SCHEMA_CHARS
    ? { parameters: { type: "object" }, note: SCHEMA_LEFT_OUT }
    : { parameters: { ...schema, type: "object" }, note: "" };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
