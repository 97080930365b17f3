import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { freshToken } from "../integrations/tokens.ts";
import { mcpServerOf } from "./mcp-server.ts";
import { openSealed } from "./sealed.ts";
import { type Finding, NOTHING_FOUND, PingFault } from "./ping.ts";

export interface Ask {
  signal: AbortSignal;
  /** Set if the connection is not made yet. */
  draft: boolean;
}

/** Tests a tool server in a session of the pool, which also starts the programs of this machine. */
export async function pingBySession(app: App, row: ConnectionRow, ask: Ask): Promise<Finding> {
  const found = await inspect(app, row, ask);
  if (!found.ok) throw new PingFault("unreachable", found.message);
  const { server_info, tools } = found;
  return {
    ...NOTHING_FOUND,
    detail: tools.length === 1 ? "1 tool" : `${tools.length} tools`,
    server_info,
    tools,
  };
}

async function inspect(app: App, row: ConnectionRow, { signal, draft }: Ask) {
  try {
    const server = draft
      ? mcpServerOf(
          app,
          row,
          async () => openSealed(app, row).credential || null,
          async () => true,
        )
      : mcpServerOf(app, row, (refused) => freshToken(app, row.id, refused));
    return await app.mcp.inspect(server, signal);
  } catch (error) {
    if (error instanceof AppError) throw new PingFault("forbidden", error.message);
    if (!signal.aborted) throw error;
    throw new PingFault("timeout", `${row.label} did not answer in time. Try again in a minute.`);
  }
}
