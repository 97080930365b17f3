import { Elysia, t } from "elysia";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { administrators, authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { STREAM_HEADERS } from "../../http/stream.ts";
import {
  createConnection,
  deleteConnection,
  draftConnection,
  listConnections,
  ownConnection,
  patchConnection,
  readConnection,
} from "./connections.ts";
import {
  connectionBody,
  type ConnectionBody,
  type ConnectionInput,
  newConnectionBody,
} from "./body-shapes.ts";
import { fallbacksIn } from "./fallbacks.ts";
import { pullModel } from "./pull-model.ts";
import { listPrograms } from "./programs.ts";
import { ConnectionShape, ConnectionTestShape, ToolProgramShape } from "./shapes.ts";
import { testConnection, testDraft } from "./test-connection.ts";

const connectionParams = t.Object({ connection_id: t.String({ format: "uuid" }) });

const DESCRIBED = {
  list: describe({
    tag: "Connections",
    summary: "List your connections",
    answers: { 200: t.Array(ConnectionShape) },
  }),
  programs: describe({
    tag: "Connections",
    summary: "List the programs you may connect",
    description:
      "Tool servers (MCP) that the operator runs on the machine of this server and has opened to your account. Make a connection of kind `mcp` to use one.",
    answers: { 200: t.Array(ToolProgramShape) },
  }),
  read: describe({
    tag: "Connections",
    summary: "Read a connection",
    answers: { 200: ConnectionShape },
  }),
  create: describe({
    tag: "Connections",
    summary: "Make a connection",
    description:
      "Nothing is sent to the provider; a test does that. No two have the same label: of one that is taken a number is added, as the answer says.",
    answers: { 201: ConnectionShape },
    errors: ["plan_limit_reached"],
  }),
  patch: describe({
    tag: "Connections",
    summary: "Change a connection",
    description:
      "Absent members stay as they are. The kind cannot change, and another server needs the credential and the headers anew. An API key can neither take tools off `ask_tools` nor have a connection with such tools lead to another server; nor can it change `credential`, `headers` or `config.client_secret` there, or where a call waits for a yes: it hears 403 `session_required`. A change by somebody who is signed in, and be it `{}`, ends `unconfirmed`.",
    answers: { 200: ConnectionShape },
    errors: ["plan_limit_reached", "session_required"],
  }),
  remove: describe({
    tag: "Connections",
    summary: "Delete a connection",
    description:
      "Inboxes that used it are left without it. An API key cannot delete one with tools in `ask_tools`: it hears 403 `session_required`.",
    answers: { 204: null },
    errors: ["session_required"],
  }),
  draft: describe({
    tag: "Connections",
    summary: "Test a connection before it is made",
    description:
      "Takes what would make the connection, tests it as a test of a connection does, and keeps nothing.",
    answers: { 200: ConnectionTestShape },
  }),
  test: describe({
    tag: "Connections",
    summary: "Test a connection",
    description:
      "Asks the provider for something that costs nothing (its models, who you are, or its tools). No model is asked a question, so that `ok` does not say whether it answers: the connection shows what messages find. Always 200: the verdict is in the body.",
    answers: { 200: ConnectionTestShape },
  }),
};

const PULLED =
  "As server-sent events, each with `status`, and `completed` of `total` bytes where that is known; the last one has `done`, or `error`. Whoever stops listening ends it, and the next time it goes on from there. For administrators, since it takes room on a machine that others may use as well.";

const PULL = {
  draft: describe({
    tag: "Connections",
    summary: "Have an Ollama fetch a model, before the connection is made",
    description: PULLED,
    answers: { 200: { content_type: "text/event-stream", words: "How far it is." } },
    errors: ["admin_required", "rate_limited"],
  }),
  made: describe({
    tag: "Connections",
    summary: "Have an Ollama fetch a model",
    description: PULLED,
    answers: { 200: { content_type: "text/event-stream", words: "How far it is." } },
    errors: ["admin_required", "rate_limited"],
  }),
};

export function connectionRoutes(app: App) {
  return new Elysia().use(ownRoutes(app)).use(pullRoutes(app));
}

function pullRoutes(app: App) {
  const answer = (user: UserRow, row: ConnectionRow, to: { request: Request; headers: object }) =>
    new Response(pullModel(app, user, { row, gone: to.request.signal }), {
      headers: { ...to.headers, ...STREAM_HEADERS } as Record<string, string>,
    });
  return new Elysia()
    .use(administrators(app))
    .post(
      "/connections/pull",
      ({ user, body, request, set: { headers } }) =>
        answer(user, draftConnection(app, user, { ...inputOf(body), kind: body.kind }), { request, headers }),
      { body: newConnectionBody, ...PULL.draft },
    )
    .post(
      "/connections/:connection_id/pull",
      async ({ user, params, body, request, set: { headers } }) => {
        const row = await ownConnection(app.db, user, params.connection_id);
        return answer(user, { ...row, model: body.model }, { request, headers });
      },
      {
        params: connectionParams,
        body: t.Object({ model: t.String({ minLength: 1, maxLength: 200, examples: ["llama3.2"] }) }),
        ...PULL.made,
      },
    );
}

function ownRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/connections", ({ user }) => listConnections(app, user), DESCRIBED.list)
    .get("/connections/programs", ({ user }) => listPrograms(app, user), DESCRIBED.programs)
    .post(
      "/connections",
      async ({ caller, body, set }) => {
        set.status = 201;
        return createConnection(app, caller, { ...inputOf(body), kind: body.kind });
      },
      { body: newConnectionBody, ...DESCRIBED.create },
    )
    .post(
      "/connections/test",
      async ({ user, body }) => {
        using _trip = await beginTrip(user);
        return await testDraft(app, user, { ...inputOf(body), kind: body.kind });
      },
      { body: newConnectionBody, ...DESCRIBED.draft },
    )
    .get(
      "/connections/:connection_id",
      ({ user, params }) => readConnection(app, user, params.connection_id),
      { params: connectionParams, ...DESCRIBED.read },
    )
    .patch(
      "/connections/:connection_id",
      ({ caller, params, body }) =>
        patchConnection(app, caller, { id: params.connection_id, input: inputOf(body) }),
      {
        params: connectionParams,
        body: connectionBody,
        ...DESCRIBED.patch,
      },
    )
    .delete(
      "/connections/:connection_id",
      async ({ caller, params, set }) => {
        await deleteConnection(app, caller, params.connection_id);
        set.status = 204;
      },
      { params: connectionParams, ...DESCRIBED.remove },
    )
    .post(
      "/connections/:connection_id/test",
      async ({ user, params }) => {
        using _trip = await beginTrip(user);
        return await testConnection(app, user, params.connection_id);
      },
      { params: connectionParams, ...DESCRIBED.test },
    );
}

function inputOf(body: ConnectionBody): ConnectionInput {
  const url = body.base_url === undefined ? body.url : body.base_url;
  const members = {
    kind: body.kind,
    label: body.label ?? body.name,
    credential: body.credential ?? body.api_key ?? body.token,
    model: body.model,
    base_url: url?.trim() ?? url,
    headers: body.headers,
    fallback_connection_ids: fallbacksIn(body),
    monthly_budget: body.monthly_budget,
    config: body.config,
    ask_tools: body.ask_tools,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
