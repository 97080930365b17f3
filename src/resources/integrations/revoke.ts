import type { App } from "../../app.ts";
import { ownBaseUrl } from "../connections/kinds.ts";
import { type OAuthServer, openSealed } from "../connections/sealed.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { messageOf } from "../../errors.ts";
import { revokeAt } from "./oauth-client.ts";
import { askServer } from "./oauth-wire.ts";
import { providerNamed, providerServer } from "./providers.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

/** How long a deletion waits for the provider. */
const REVOKE_TIMEOUT_MS = 3_000;

/** Revokes the tokens of a deleted connection. The deletion stands, whatever the provider answers. */
export async function revokeTokens(app: App, row: ConnectionRow): Promise<void> {
  if (row.auth !== "oauth") return;
  const signal = timeoutSignal(REVOKE_TIMEOUT_MS);
  try {
    await revoke(app, row, signal);
  } catch (error) {
    // Only the sentence is logged: other members of an error may hold the token.
    app.log.info({ connection_id: row.id, why: messageOf(error) }, "the token was not revoked");
  }
}

async function revoke(app: App, row: ConnectionRow, signal: AbortSignal): Promise<void> {
  const { credential, oauth } = openSealed(app, row);
  if (oauth === undefined) return;
  const server = oauth.server ?? providerServer(app, providerNamed(row.kind));
  // Revoking the refresh token ends every access token that was made from it (RFC 7009 §2.1).
  const token = oauth.refresh_token ?? credential;
  const { revocation_endpoint } = server;
  if (revocation_endpoint !== null)
    await revokeAt(app, { ...server, revocation_endpoint }, { token, signal });
  else if (row.kind === "codehost-a") await deleteGitHubToken(app, server, { token: credential, signal });
}

/** Deletes a token at GitHub, where an application does so as its client instead of by RFC 7009. */
async function deleteGitHubToken(
  app: App,
  { client }: OAuthServer,
  { token, signal }: { token: string; signal: AbortSignal },
): Promise<void> {
  const base_url = ownBaseUrl(app, "codehost-a").replace(/(?<!\/)\/+$/, "");
  const pair = `${client.id}:${client.secret ?? ""}`;
  await askServer(app, `${base_url}/applications/${encodeURIComponent(client.id)}/token`, {
    method: "DELETE",
    headers: {
      authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
      accept: "application/vnd.github+json",
      "content-type": "application/json",
    },
    body: JSON.stringify({ access_token: token }),
    signal,
  });
}
