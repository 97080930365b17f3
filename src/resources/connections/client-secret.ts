import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { member, parseJson } from "../../lib/foreign-json.ts";
import { openIfPossible } from "./sealed.ts";

type Settings = Record<string, unknown> | null;

/** Settings that may be shown, and the secret taken out of them: undefined keeps the stored one, null removes it. */
interface SplitConfig {
  config: Settings | undefined;
  client_secret?: string | null;
}

/**
 * Takes the secret of an OAuth client out of its settings: it is sealed, and never shown. Settings without a secret
 * keep the stored one as long as they name the same client of the same issuer.
 */
export function splitConfig(app: App, row: ConnectionRow, config: Settings | undefined): SplitConfig {
  if (config === undefined) return { config };
  const { client_secret, ...shown } = config ?? {};
  if (typeof client_secret === "string" && client_secret !== "")
    return { config: shown, client_secret: client_secret.trim() };
  if (client_secret !== undefined)
    throw invalid(
      "body.config",
      "invalid_client_secret",
      "The secret of the OAuth client must be text (`config.client_secret`).",
    );
  const kept = isSameClient(row, shown) || openIfPossible(app, row)?.client_secret === undefined;
  return { config: config === null ? null : shown, ...(kept ? {} : { client_secret: null }) };
}

/** Whether settings name the same client as before; an issuer that was not named before may be named now. */
function isSameClient(row: ConnectionRow, shown: Record<string, unknown>): boolean {
  const before = row.config === null ? undefined : parseJson(row.config);
  const issuer = member(before, "issuer") ?? shown["issuer"];
  return member(before, "client_id") === shown["client_id"] && issuer === shown["issuer"];
}
