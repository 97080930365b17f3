import { Elysia, t } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import {
  CONNECTION_KINDS,
  type ConnectionInput,
  createConnection,
  deleteConnection,
  listConnections,
  patchConnection,
} from "./connections.ts";

const kind = t.Union(CONNECTION_KINDS.map((name) => t.Literal(name)));
const secret = t.Optional(t.String({ minLength: 1, maxLength: 4_000 }));
const label = t.Optional(t.String({ maxLength: 100 }));
const url = t.Optional(t.Nullable(t.String({ maxLength: 2_048 })));

/** `api_key`, `token`, `name` and `url` are other people's words for the same members. */
const connectionBody = {
  label,
  name: label,
  credential: secret,
  api_key: secret,
  token: secret,
  model: t.Optional(t.Nullable(t.String({ maxLength: 200 }))),
  base_url: url,
  url,
  headers: t.Optional(t.Record(t.String(), t.String({ maxLength: 4_000 }))),
};
const connectionParams = t.Object({ connection_id: t.String({ format: "uuid" }) });

export function connectionRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/connections", ({ user }) => listConnections(app, user))
    .post(
      "/connections",
      async ({ user, body, set }) => {
        set.status = 201;
        return createConnection(app, user, { ...inputOf(body), kind: body.kind });
      },
      { body: t.Object({ ...connectionBody, kind }) },
    )
    .patch(
      "/connections/:connection_id",
      ({ user, params, body }) =>
        patchConnection(app, user, { id: params.connection_id, input: inputOf(body) }),
      { params: connectionParams, body: t.Object({ ...connectionBody, kind: t.Optional(kind) }) },
    )
    .delete(
      "/connections/:connection_id",
      async ({ user, params, set }) => {
        await deleteConnection(app, user, params.connection_id);
        set.status = 204;
      },
      { params: connectionParams },
    );
}

type Aliased = ConnectionInput & {
  name?: string | undefined;
  api_key?: string | undefined;
  token?: string | undefined;
  url?: string | null | undefined;
};

function inputOf(body: Aliased): ConnectionInput {
  const members = {
    kind: body.kind,
    label: body.label ?? body.name,
    credential: body.credential ?? body.api_key ?? body.token,
    model: body.model,
    base_url: body.base_url === undefined ? body.url : body.base_url,
    headers: body.headers,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
