import { Elysia, t } from "elysia";
import { addApiKey, listApiKeys, revokeApiKey } from "./api-keys.ts";
import { checkedName } from "./profile.ts";
import { ApiKeyShape, NewApiKeyShape } from "./shapes.ts";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverRate } from "../../http/request.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/**
 * The bound on new keys: each has a rate of its own, so that whoever could make any number of keys would have no
 * bound at all.
 */
const KEY_RATE = { limit: 60, window_seconds: HOUR_SECONDS };

const name = t.String({ maxLength: 400, examples: ["Ada"] });
/** Unknown members are let in, because Elysia does not drop them from an object that may be null. */
const keyBody = t.Object({ name: t.Optional(t.Nullable(name)) }, { additionalProperties: true });

export function apiKeyRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/auth/api-keys", ({ user }) => listApiKeys(app.db, user), {
      ...describe({ tag: "Auth", summary: "Your API keys", answers: { 200: t.Array(ApiKeyShape) } }),
    })
    .post(
      "/auth/api-key",
      ({ user, caller, body, set }) => {
        refuseOverRate(app, `keys:${user.id}`, KEY_RATE);
        set.headers["cache-control"] = "no-store";
        const named = body?.name ?? null;
        return addApiKey(app, caller, named === null ? null : checkedName(named));
      },
      {
        body: t.Nullable(keyBody),
        ...describe({
          tag: "Auth",
          summary: "Make an API key, shown this once",
          description:
            "On the Free plan it takes the place of the key that there is. The owner is told by mail.",
          answers: { 200: NewApiKeyShape },
          errors: ["plan_limit_reached"],
          optional_body: keyBody,
        }),
      },
    )
    .delete(
      "/auth/api-keys/:key_id",
      async ({ caller, params, set }) => {
        await revokeApiKey(app, caller, params.key_id);
        set.status = 204;
      },
      {
        params: t.Object({ key_id: t.String({ format: "uuid" }) }),
        ...describe({
          tag: "Auth",
          summary: "Revoke an API key (Pro and Team)",
          answers: { 204: null },
          errors: ["plan_required"],
        }),
      },
    );
}
