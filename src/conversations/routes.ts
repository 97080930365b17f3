import { Elysia } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";

export function conversationRoutes(app: App) {
  return new Elysia().use(authenticated(app));
}
