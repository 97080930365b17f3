import { toolServersOf } from "../../db/inbox-columns.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { ConnectionRow, InboxRow } from "../../db/schema.ts";
import { INTEGRATION_KINDS } from "../../config/integrations.ts";
import { integrationCalled } from "../../trust/target-names.ts";
import { asksFirstAt } from "./ask-first.ts";
import { toolServerName } from "./tool-server-name.ts";

/** A target: an integration or a tool server that an instruction can name. */
export interface Target {
  /** Its name in an instruction: `notes`, `mcp:calendar`. */
  name: string;
  connection: ConnectionRow;
  /** Its tools that the owner is asked about first; `*` is each that may change something. */
  asks_first: string[];
}

export interface Targets {
  /** The targets of the inbox, in a fixed order. */
  attached: Target[];
  /** Names of further tool servers of the account, which this inbox does not have. */
  elsewhere: string[];
}

export const NO_TARGETS: Targets = { attached: [], elsewhere: [] };

/** The targets of an inbox: all integrations of its account, and the tool servers in the inbox's list. */
export async function targetsOf(db: Db, inbox: InboxRow): Promise<Targets> {
  const rows = await toolConnections(db, { user_id: inbox.user_id });
  const ids = toolServersOf(inbox);
  const servers = toolServers(rows);
  const attached = servers.filter(({ connection }) => ids.includes(connection.id));
  const elsewhere = servers.filter(({ connection }) => !ids.includes(connection.id));
  const integrations = INTEGRATION_KINDS.flatMap((kind) => integrationOf(rows, kind));
  return { attached: [...integrations, ...attached], elsewhere: elsewhere.map(({ name }) => name) };
}

/** The names of an account's tool servers, each with the id of its connection. */
export async function toolServerNames(db: Db, user_id: string): Promise<Map<string, string>> {
  const servers = toolServers(await toolConnections(db, { user_id }));
  return new Map(servers.map(({ name, connection }) => [name, connection.id]));
}

/** The target that a name means; a tool server may be named without its prefix. */
export function targetNamed(targets: string[], name: string): string | undefined {
  return targets.find((target) => target === name) ?? targets.find((target) => target === `mcp:${name}`);
}

/** The connections of an account that have tools, oldest first. */
export const toolConnections = remembered((db, key: { user_id: string }) =>
  db
    .selectFrom("connections")
    .selectAll()
    .where("user_id", "=", key.user_id)
    .where("kind", "in", ["mcp", ...INTEGRATION_KINDS])
    .orderBy("id"),
);

/** The tool servers among an account's connections, oldest first; of two with the same label the newer gets a number. */
function toolServers(rows: readonly ConnectionRow[]): Target[] {
  const taken = new Set<string>();
  return rows
    .filter(({ kind }) => kind === "mcp")
    .map((connection) => {
      const slug = toolServerName(connection.label);
      let name = `mcp:${slug}`;
      for (let number = 2; taken.has(name); number += 1) name = `mcp:${slug}-${number}`;
      taken.add(name);
      return { name, connection, asks_first: asksFirstAt(rows, connection) };
    });
}

/** Returns the target of an integration: of several accounts at the provider the first that works, else the first. */
function integrationOf(rows: readonly ConnectionRow[], kind: string): Target[] {
  const own = rows.filter((row) => row.kind === kind);
  const connection = own.find(({ status }) => status !== "needs_auth") ?? own[0];
  return connection ? [{ name: kind, connection, asks_first: asksFirstAt(rows, connection) }] : [];
}

/**
 * The target that an instruction names: as `targetNamed`, and an integration by the name of its service too, such as
 * `github`.
 */
export function targetCalled(targets: string[], name: string): string | undefined {
  const called = integrationCalled(name);
  return targetNamed(targets, name) ?? (called && targetNamed(targets, called));
}
