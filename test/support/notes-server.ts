import { type ApiCall, type StandIn, startStandIn } from "./api-stand-in.ts";

// A stand-in for the part of Notion's interface that the tools use, which judges requests as the reference says:
// https://developers.notion.com/reference/request-limits and /reference/status-codes.

const VERSION = "2026-03-11";
const MAX_SIBLINGS = 100;
const MAX_TEXT_CHARS = 2_000;
const MAX_NESTING = 2;

// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export interface NotesServer extends StandIn {
  /** By id: pages, data sources, databases. */
  things: Map<string, Json>;
  /** Blocks by the id of their parent. */
  children: Map<string, Json[]>;
}

export function startNotes(token: string): NotesServer {
  const things = new Map<string, Json>();
  const children = new Map<string, Json[]>();
  const state = { things, children };
  const standIn = startStandIn((call) => judge(call, token) ?? answer(call, state));
  return Object.assign(standIn, state);
}

/** Text as Notion gives it. */
export function rich(text: string, marks: Json = {}, href: string | null = null): Json {
  return { type: "text", text: { content: text }, annotations: marks, plain_text: text, href };
}

export function page(id: string, title: string, properties: Json = {}): Json {
  return {
    object: "page",
    id,
    url: `https://www.notion.so/${id}`,
    last_edited_time: "2026-03-04T10:00:00.000Z",
    in_trash: false,
    properties: { Name: { id: "title", type: "title", title: [rich(title)] }, ...properties },
  };
}

function judge({ headers, body, method }: ApiCall, token: string): Response | undefined {
  if (headers["authorization"] !== `Bearer ${token}`)
    return refusal(401, "unauthorized", "API token is invalid.");
  if (headers["notion-version"] !== VERSION)
    return refusal(400, "missing_version", "Notion-Version header failed validation");
  if (method !== "GET" && (typeof body !== "object" || headers["content-type"] !== "application/json"))
    return refusal(400, "invalid_json", "Error parsing JSON body.");
  return undefined;
}

function answer(call: ApiCall, state: Pick<NotesServer, "things" | "children">): Response | undefined {
  const { method, path, body } = call;
  const [, given = ""] = /^\/v1\/[a-z_]+\/([0-9a-f-]+)/.exec(path) ?? [];
  const route = `${method} ${path.replace(given || "\0", ":id")}`;
  const id = given.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  if (route === "POST /v1/search") return search(body, state.things);
  if (route === "POST /v1/pages") return create(body, state);
  if (route === "GET /v1/pages/:id") return thing(state.things, id, "page");
  if (route === "GET /v1/databases/:id") return thing(state.things, id, "database");
  if (route === "GET /v1/blocks/:id/children") return listChildren(call, state.children.get(id));
  if (route === "PATCH /v1/blocks/:id/children") return append(id, body, state);
  return refusal(400, "invalid_request_url", "Invalid request URL.");
}

function search(body: Json, things: Map<string, Json>): Response {
  const fault = unknownMember(body, ["query", "filter", "sort", "start_cursor", "page_size"]);
  if (fault !== undefined) return fault;
  if (body.page_size > 100) return invalid("body.page_size should be ≤ `100`");
  if (body.filter !== undefined && !["page", "data_source"].includes(body.filter.value))
    return invalid("body.filter.value should be `page` or `data_source`");
  const found = [...things.values()].filter(
    (one) =>
      one.object !== "database" &&
      JSON.stringify(one).toLowerCase().includes(body.query.toLowerCase()) &&
      (body.filter === undefined || one.object === body.filter.value),
  );
  const at = Number(body.start_cursor ?? "0");
  const next = at + Number(body.page_size ?? 100);
  return list(found.slice(at, next), next < found.length ? String(next) : null);
}

function create(body: Json, { things, children }: Pick<NotesServer, "things" | "children">): Response {
  const fault = unknownMember(body, ["parent", "properties", "children", "icon", "cover"]);
  if (fault !== undefined) return fault;
  const { type, ...ids } = body.parent;
  const parent = things.get(ids[type]);
  const wanted = { page_id: "page", data_source_id: "data_source" }[type as string];
  if (wanted === undefined || parent?.object !== wanted)
    return refusal(404, "object_not_found", `Could not find ${wanted} with ID: ${ids[type]}.`);
  const problem = blocksProblem(body.children ?? [], 0) ?? textsProblem(body.properties.title?.title);
  if (problem !== undefined) return invalid(problem);
  const id = crypto.randomUUID();
  const made = page(id, body.properties.title.title.map((one: Json) => one.text.content).join(""));
  things.set(id, { ...made, parent: body.parent });
  children.set(id, body.children ?? []);
  return Response.json(things.get(id));
}

function append(
  id: string,
  body: Json,
  { things, children }: Pick<NotesServer, "things" | "children">,
): Response {
  if (!things.has(id))
    return refusal(
      404,
      "object_not_found",
      `Could not find block with ID: ${id}. Make sure the relevant pages and databases are shared with your integration.`,
    );
  const problem = blocksProblem(body.children, 0);
  if (problem !== undefined) return invalid(problem);
  children.set(id, [...(children.get(id) ?? []), ...body.children]);
  return list(body.children, null);
}

function listChildren({ query }: ApiCall, blocks: Json[] | undefined): Response {
  if (blocks === undefined) return refusal(404, "object_not_found", "Could not find block.");
  const size = Number(query["page_size"] ?? "100");
  const at = Number(query["start_cursor"] ?? "0");
  const next = at + size < blocks.length ? String(at + size) : null;
  return list(blocks.slice(at, at + size), next);
}

function list(results: Json[], next_cursor: string | null): Response {
  return Response.json({ object: "list", results, next_cursor, has_more: next_cursor !== null });
}

function thing(things: Map<string, Json>, id: string, object: string): Response {
  const found = things.get(id);
  return found?.object === object
    ? Response.json(found)
    : refusal(404, "object_not_found", `Could not find ${object} with ID: ${id}.`);
}

/** What Notion would find wrong with blocks that it is asked to write. */
function blocksProblem(blocks: Json[], nesting: number): string | undefined {
  if (!Array.isArray(blocks) || blocks.length > MAX_SIBLINGS) return "body.children.length should be ≤ `100`";
  if (blocks.length > 0 && nesting > MAX_NESTING) return "body.children is nested too deep";
  return blocks.map((block) => blockProblem(block, nesting)).find(Boolean);
}

function blockProblem(block: Json, nesting: number): string | undefined {
  const { type } = block;
  const data = block[type];
  if (data === undefined) return `body.children[].${type} should be defined`;
  const { table_width, children = [], cells, rich_text = [] } = data;
  if (type === "table" && children.some((row: Json) => row.table_row.cells.length !== table_width))
    return "Number of cells in table row must match the table width";
  const texts: Json[] = cells ?? [rich_text];
  return texts.map(textsProblem).find(Boolean) ?? blocksProblem(children, nesting + 1);
}

function textsProblem(texts: Json[]): string | undefined {
  if (!Array.isArray(texts) || texts.length > 100) return "rich_text.length should be ≤ `100`";
  for (const { text } of texts) {
    if (text.content.length > MAX_TEXT_CHARS) return "text.content.length should be ≤ `2000`";
    if (text.link !== null && !/^(https?:\/\/|mailto:)/.test(text.link.url)) return "Invalid URL for link.";
  }
  return undefined;
}

function unknownMember(body: Json, known: string[]): Response | undefined {
  const name = Object.keys(body).find((key) => !known.includes(key));
  return name === undefined ? undefined : invalid(`body.${name} should be not present`);
}

function invalid(message: string): Response {
  return refusal(400, "validation_error", `body failed validation: ${message}.`);
}

function refusal(status: number, code: string, message: string): Response {
  return Response.json({ object: "error", status, code, message, request_id: "r-1" }, { status });
}
