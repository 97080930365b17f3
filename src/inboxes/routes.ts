import { Elysia, t } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import { createInbox, deleteInbox, listInboxes, patchInbox } from "./inboxes.ts";

const MAX_LABEL_CHARS = 100;
/** Above every plan; the plan's own cap answers with its numbers. */
const MAX_LIST = 1_000;

const inboxBody = {
  label: t.Optional(t.Nullable(t.String({ maxLength: MAX_LABEL_CHARS }))),
  default_connection_id: t.Optional(t.Nullable(t.String({ format: "uuid" }))),
  mcp_connection_ids: t.Optional(t.Array(t.String({ format: "uuid" }), { maxItems: MAX_LIST })),
  reply_enabled: t.Optional(t.Boolean()),
  allowlist_senders: t.Optional(t.Array(t.String({ maxLength: 254 }), { maxItems: MAX_LIST })),
  scope: t.Optional(
    t.Nullable(
      t.Object({
        targets: t.Array(t.String({ maxLength: 100 }), { maxItems: 100 }),
        autonomous: t.Optional(t.Array(t.String({ maxLength: 100 }), { maxItems: 100 })),
      }),
    ),
  ),
  inbound_policy: t.Optional(
    t.Object({ reply_to_unauthenticated: t.Optional(t.Boolean()), process_bulk: t.Optional(t.Boolean()) }),
  ),
};
const inboxParams = t.Object({ inbox_id: t.String({ format: "uuid" }) });

export function inboxRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/inboxes", ({ user }) => listInboxes(app, user))
    .post(
      "/inboxes",
      async ({ user, body, set }) => {
        set.status = 201;
        return createInbox(app, user, body);
      },
      { body: t.Object({ ...inboxBody, prefix: t.Optional(t.String({ maxLength: MAX_LABEL_CHARS })) }) },
    )
    .patch(
      "/inboxes/:inbox_id",
      ({ user, params, body }) => patchInbox(app, user, { id: params.inbox_id, input: body }),
      {
        params: inboxParams,
        body: t.Object(inboxBody),
      },
    )
    .delete(
      "/inboxes/:inbox_id",
      async ({ user, params, set }) => {
        await deleteInbox(app, user, params.inbox_id);
        set.status = 204;
      },
      { params: inboxParams },
    );
}
