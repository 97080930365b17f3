import { endpointOf, type ModelKind, nameAt } from "../../ai/providers.ts";
import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { type ConnectionKind, isModelKind, KIND_INFO, ownBaseUrl } from "./kinds.ts";
import { PingFault, type PingTarget } from "./ping.ts";
import { openSealed, type Sealed } from "./sealed.ts";

/** The address and the opened secrets of a connection. Throws PingFault where it lacks what it needs. */
export function pingTarget(app: App, row: ConnectionRow, signal: AbortSignal): PingTarget {
  const kind = row.kind as ConnectionKind;
  const { credential, headers } = openOrFault(app, row);
  const base_url = isModelKind(kind) ? modelBaseUrl(row, kind) : (row.base_url ?? ownBaseUrl(app, kind));
  const oauth = row.auth === "oauth";
  const name = nameAt(KIND_INFO[kind], base_url);
  if (credential === "" && oauth)
    throw new PingFault("needs_auth", `${name} has yet to be connected. Connect it to go on.`);
  if (credential === "" && KIND_INFO[kind].needs_credential)
    throw new PingFault("no_credential", `${name} needs a credential. Enter one in this connection.`);
  return { kind, name, base_url, credential, headers, oauth, fetch: app.fetch, signal };
}

/** Opens the secrets of a row; those that were sealed under another master key count as lost. */
function openOrFault(app: App, row: ConnectionRow): Sealed {
  try {
    return openSealed(app, row);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new PingFault("no_credential", `${error.message} Enter the credential again.`);
  }
}

function modelBaseUrl(row: ConnectionRow, kind: ModelKind): string {
  return endpointOf({ kind, base_url: row.base_url ?? "", model: "" }).base_url;
}
