import type { HttpTransport, McpServer, StdioTransport } from "../../ai/mcp.ts";
import type { App } from "../../app.ts";
import { programPath } from "../../config/config.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { folderRefusal, programFolder } from "./program-folders.ts";
import { isProgramUrl, mayUse, noSuchProgram, type Program, programAt, programName } from "./programs.ts";
import { openSealed } from "./sealed.ts";
import { isStillAt } from "./still-at.ts";
import { toolServerName } from "./tool-server-name.ts";
import { sha256 } from "../../lib/sha256.ts";

/** Whether a connection still has the address that it had when its row was read. */
type IsThere = () => Promise<boolean>;

const CHANGED = "The connection was changed or deleted meanwhile. Ask again.";

/**
 * A connection of kind `mcp` in the form that the pool of sessions takes. Throws AppError when its secrets cannot be
 * opened, or when it means a program that is no longer set up.
 */
export function mcpServerOf(
  app: App,
  row: ConnectionRow,
  token: HttpTransport["token"],
  isThere: IsThere = () => isStillAt(app.db, row),
): McpServer {
  const { id, user_id: account, label, base_url } = row;
  const transport = isProgramUrl(base_url)
    ? stdioTransport(app, row, { base_url, isThere })
    : httpTransport(app, row, { token, isThere });
  return { id, account, label, target: `mcp:${toolServerName(label)}`, transport };
}

function httpTransport(
  app: App,
  row: ConnectionRow,
  { token, isThere }: { token: HttpTransport["token"]; isThere: IsThere },
): HttpTransport {
  const { credential, headers } = openSealed(app, row);
  // What tells accounts at the server apart. A token that came by OAuth is renewed again and again, and means the
  // same account until somebody consents anew.
  const identity = `${row.secrets_id} ${row.auth === "oauth" ? `oauth ${row.updated}` : sha256(credential, "hex")}`;
  const checked = async (refused?: string): Promise<string | null> => {
    const fresh = await token(refused);
    // Checked after the token was read, so that no token goes to an address for which it was not entered.
    if (!(await isThere())) throw new AppError("conflict", CHANGED);
    return fresh;
  };
  return { kind: "http", url: row.base_url ?? "", headers, identity, token: checked, fetch: app.fetch };
}

function stdioTransport(
  app: App,
  row: ConnectionRow,
  { base_url, isThere }: { base_url: string; isThere: IsThere },
): StdioTransport {
  const program = programAt(app, base_url);
  if (program === undefined) throw invalid("body.base_url", "unknown_program", noSuchProgram(base_url));
  const { command, args, env } = program;
  const cwd = programFolder(app, row.user_id, programName(base_url));
  return {
    kind: "stdio",
    command,
    args,
    env: { PATH: programPath(), HOME: cwd, ...env },
    cwd,
    refusal: async () => {
      if (!(await isThere())) return `${row.label}: ${CHANGED}`;
      if (!(await isOpenTo(app, row.user_id, program))) return noSuchProgram(base_url);
      return folderRefusal(app, cwd);
    },
  };
}

async function isOpenTo(app: App, user_id: string, program: Program): Promise<boolean> {
  const user = await app.db.selectFrom("users").selectAll().where("id", "=", user_id).executeTakeFirst();
  return user !== undefined && mayUse(app, user, program);
}
