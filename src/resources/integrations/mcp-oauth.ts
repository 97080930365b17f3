import { noteSecurityEvent } from "../accounts/security-events.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { ownConnection } from "../connections/connections.ts";
import { isProgramUrl } from "../connections/programs.ts";
import { newlyGrantedColumns, type OAuthServer, openIfPossible } from "../connections/sealed.ts";
import type { Db } from "../../db/database.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import type { Granted, Store } from "./callback.ts";
import { redirectUri } from "./connect.ts";
import { findClient } from "./mcp-oauth-client.ts";
import { findServer } from "./mcp-oauth-metadata.ts";
import { findResource } from "./mcp-oauth-probe.ts";
import { consentUrl } from "./oauth-client.ts";
import { keepState } from "./oauth-states.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

const DISCOVERY_TIMEOUT_MS = 30_000;
const OFFLINE = "offline_access";

/**
 * Finds the authorization server of an MCP server, and becomes a client there; returns the address of its consent
 * page.
 */
export async function connectMcp(app: App, caller: Caller, connection_id: string): Promise<string> {
  const row = await ownConnection(app.db, caller.user, connection_id);
  refuseOthers(row);
  const server = await discover(boundTo(app, timeoutSignal(DISCOVERY_TIMEOUT_MS)), row);
  const extra: Record<string, string> = {};
  // Without `prompt=consent` the scope offline_access is ignored (OpenID Connect Core §11).
  if (server.scope?.split(" ").includes(OFFLINE)) extra["prompt"] = "consent";
  const { url, state, verifier } = await consentUrl(server, redirectUri(app, "mcp"), extra);
  const trip = { verifier, server, base_url: row.base_url };
  await keepState(app, caller, { state, provider: "mcp", connection_id, trip });
  return url;
}

/**
 * Stores the token with its connection, unless that has become another one meanwhile; returns its name (see `Store`).
 */
export async function storeMcp(app: App, { row: state, trip, tokens, client }: Granted): ReturnType<Store> {
  const { connection_id, user_id, api_key } = state;
  const keep = async (tx: Db): Promise<string> => {
    const row = await tx
      .selectFrom("connections")
      .selectAll()
      .where("id", "=", connection_id)
      .where("user_id", "=", user_id)
      .executeTakeFirst();
    if (!row || row.base_url !== trip.base_url)
      throw new AppError("conflict", "The connection was deleted or changed meanwhile. Connect it again.");
    const before = openIfPossible(app, row)?.oauth;
    const same = before?.server?.issuer === trip.server.issuer && trip.server.issuer !== null;
    const { access_token: credential, expires_at } = tokens;
    const kept = same && before.server?.client.id === trip.server.client.id ? before.refresh_token : null;
    const oauth = {
      refresh_token: tokens.refresh_token ?? kept,
      account: "",
      server: trip.server,
      ended: false,
    };
    const columns = newlyGrantedColumns(app, row, { credential, expires_at, oauth });
    const found = { status: "ok" as const, last_error: null, updated: app.now() };
    await tx
      .updateTable("connections")
      .set({ ...columns, ...found })
      .where("id", "=", row.id)
      .execute();
    await noteSecurityEvent(app, tx, { user_id, kind: "connection_changed", client, api_key });
    return row.label;
  };
  return app.insist(keep, { connection_id });
}

/** Returns the app with one time limit for all its requests together: each may be slow, but not all. */
function boundTo(app: App, end: AbortSignal): App {
  return {
    ...app,
    fetch: (url, init = {}) =>
      app.fetch(url, { ...init, signal: init.signal ? AbortSignal.any([end, init.signal]) : end }),
  };
}

async function discover(app: App, row: ConnectionRow): Promise<OAuthServer> {
  const resource = await findResource(app, row);
  const found = await findServer(app, resource);
  const scope = lastingScope(resource.scope, found.scopes);
  return {
    issuer: found.issuer,
    names_itself: found.names_itself,
    authorization_endpoint: found.authorization_endpoint,
    token_endpoint: found.token_endpoint,
    revocation_endpoint: found.revocation_endpoint,
    client: await findClient(app, row, found, scope),
    resource: resource.id,
    scope,
    format: "form",
    pkce: true,
  };
}

/**
 * Returns the scope with `offline_access` added, which brings a refresh token, if the server offers it. It is never
 * requested alone, because then nothing else would be granted.
 */
function lastingScope(scope: string | null, offered: string[]): string | null {
  if (scope === null || !offered.includes(OFFLINE)) return scope;
  return [...new Set([...scope.split(" "), OFFLINE])].join(" ");
}

function refuseOthers({ kind, base_url }: ConnectionRow): void {
  if (kind !== "mcp")
    throw invalid(
      "path.connection_id",
      "not_mcp",
      "This connection is not one to an MCP server (`POST /integrations/{provider}/connect` is for the others).",
    );
  if (isProgramUrl(base_url))
    throw invalid(
      "path.connection_id",
      "no_oauth",
      "This MCP server is a program of this machine: it needs no authorisation.",
    );
}
