import { Elysia } from "elysia";
import { userOfApiKey } from "../accounts/accounts.ts";
import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { readJsonBody } from "./body.ts";

const UNAUTHORIZED = "This needs a valid API key.";

/**
 * Adds `user` to every route of the plugin that uses it; a request without a living key ends with 401, before
 * anything else about it is looked at.
 */
export function authenticated(app: App) {
  const users = new WeakMap<Request, Promise<UserRow>>();
  const userOf = (request: Request): Promise<UserRow> => {
    const known = users.get(request) ?? findUser(app, request.headers);
    users.set(request, known);
    return known;
  };
  return new Elysia()
    .onParse({ as: "scoped" }, async ({ request }) => {
      await userOf(request);
      return readJsonBody(request);
    })
    .derive({ as: "scoped" }, async ({ request }) => ({ user: await userOf(request) }));
}

/** By the key of `X-API-Key`, else of `Authorization: Bearer`; an empty one is a wrong one. */
async function findUser(app: App, headers: Headers): Promise<UserRow> {
  const bearer = /^Bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  const user = await userOfApiKey(app, (headers.get("x-api-key") ?? bearer ?? "").trim());
  if (user) return user;
  throw new AppError("unauthorized", UNAUTHORIZED, {
    fix: "Send it as the header X-API-Key. The operator makes one with `mailwright api-key create`.",
  });
}
