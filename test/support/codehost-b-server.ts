import { type ApiCall, type StandIn, startStandIn } from "./api-stand-in.ts";
import type { Json } from "./notes-server.ts";

// A stand-in for the part of GitLab's REST interface that the tools use: https://docs.gitlab.com/api/rest/

export interface CodehostB extends StandIn {
  issues: Json[];
  notes: Json[];
  /** By path. */
  files: Map<string, string | Buffer>;
  /** Quick actions that were carried out. */
  actions: string[];
}

const PROJECT = "acme/tools/website";

/** With the project acme/tools/website. */
export function startCodehostB(token: string): CodehostB {
  const state = {
    issues: [] as Json[],
    notes: [] as Json[],
    files: new Map<string, string | Buffer>(),
    actions: [] as string[],
  };
  const standIn = startStandIn((call) =>
    call.headers["authorization"] === `Bearer ${token}`
      ? answer(call, state)
      : refusal(401, { message: "401 Unauthorized" }),
  );
  return Object.assign(standIn, state);
}

type State = Pick<CodehostB, "issues" | "notes" | "files" | "actions">;

function answer(call: ApiCall, state: State): Response {
  if (call.path === "/api/v4/issues") return paged(searched(state.issues, call.query), call);
  const [, project = "", rest = ""] = /^\/api\/v4\/projects\/([^/]+)\/(.*)$/.exec(call.path) ?? [];
  if (decodeURIComponent(project) !== PROJECT) return refusal(404, { message: "404 Project Not Found" });
  if (rest.startsWith("repository/")) return repository(rest, call.query, state);
  const route = `${call.method} ${rest}`;
  if (route === "GET issues") return paged(searched(state.issues, call.query), call);
  if (route === "POST issues") return createIssue(call.body, state);
  if (route === "GET merge_requests") return paged([mergeRequest(call.query["state"])], call);
  return ofIssue(route, call, state);
}

function ofIssue(route: string, call: ApiCall, state: State): Response {
  const [, number] = /^[A-Z]+ issues\/(\d+)(?:\/notes)?$/.exec(route) ?? [];
  const issue = state.issues.find(({ iid }) => String(iid) === number);
  if (issue === undefined) return refusal(404, { message: "404 Not found" });
  if (!route.endsWith("/notes")) return Response.json(issue);
  return call.method === "GET" ? paged(state.notes, call) : createNote(call.body, state);
}

export function issueB(iid: number, title: string, more: Json = {}): Json {
  return {
    id: 1000 + iid,
    iid,
    title,
    description: "",
    state: "opened",
    author: { username: "ada" },
    labels: [],
    user_notes_count: 0,
    created_at: "2026-01-02T10:00:00.000Z",
    updated_at: "2026-01-03T10:00:00.000Z",
    references: { full: `${PROJECT}#${iid}` },
    web_url: `https://gitlab.example/${PROJECT}/-/issues/${iid}`,
    ...more,
  };
}

export function noteB(id: number, body: string, more: Json = {}): Json {
  return {
    id,
    body,
    system: false,
    author: { username: "ben" },
    created_at: "2026-01-04T10:00:00Z",
    ...more,
  };
}

function searched(issues: Json[], { search = "", state, scope }: Record<string, string>): Json[] {
  if (scope !== "all") return [];
  return issues.filter(
    (one) => `${one.title} ${one.description}`.includes(search) && (state === "all" || one.state === state),
  );
}

function mergeRequest(state = "all"): Json {
  return {
    ...issueB(7, "Mend the door"),
    state,
    web_url: `https://gitlab.example/${PROJECT}/-/merge_requests/7`,
  };
}

/** Offset pagination, with the totals in headers. */
function paged(all: Json[], { query }: ApiCall): Response {
  const size = Number(query["per_page"] ?? "20");
  return Response.json(all.slice(0, size), {
    headers: { "x-total": String(all.length), "x-per-page": String(size) },
  });
}

function createIssue(body: Json, state: State): Response {
  if (typeof body?.title !== "string") return refusal(400, { error: "title is missing" });
  if (body.title === "" || body.title.length > 255)
    return refusal(400, { message: { title: ["can't be blank"] } });
  const description = carriedOut(body.description ?? "", state);
  const issue = issueB(state.issues.length + 1, body.title, { description });
  state.issues.push(issue);
  return Response.json(issue, { status: 201 });
}

function createNote(body: Json, state: State): Response {
  if (typeof body?.body !== "string" || body.body === "") return refusal(400, { error: "body is missing" });
  const note = noteB(900 + state.notes.length, carriedOut(body.body, state));
  state.notes.push(note);
  return Response.json(note, { status: 201 });
}

/** GitLab takes the lines out that it obeys. */
function carriedOut(text: string, { actions }: State): string {
  const lines = text.trim().replaceAll(/\r\n?/g, "\n").split("\n");
  actions.push(...lines.filter((line) => /^\/[a-z_]+/i.test(line)));
  return lines.filter((line) => !/^\/[a-z_]+/i.test(line)).join("\n");
}

function repository(rest: string, query: Record<string, string>, { files }: State): Response {
  if (query["ref"] === undefined) return refusal(400, { error: "ref is missing" });
  if (query["ref"] !== "HEAD" && query["ref"] !== "main")
    return refusal(404, { message: "404 Commit Not Found" });
  if (rest === "repository/tree") {
    const folder = query["path"] === undefined ? "" : `${query["path"]}/`;
    const names = [...files.keys()]
      .filter((name) => name.startsWith(folder))
      .map((name) => name.slice(folder.length));
    const entries = names.map((name) => ({
      name: name.split("/")[0],
      type: name.includes("/") ? "tree" : "blob",
    }));
    return Response.json(entries, { headers: { "x-total": String(entries.length) } });
  }
  const name = decodeURIComponent(/^repository\/files\/([^/]+)$/.exec(rest)?.[1] ?? "");
  const file = files.get(name);
  if (file === undefined) return refusal(404, { message: "404 File Not Found" });
  return Response.json({
    file_path: name,
    encoding: "base64",
    content: Buffer.from(file).toString("base64"),
  });
}

function refusal(status: number, body: Json): Response {
  return Response.json(body, { status });
}
