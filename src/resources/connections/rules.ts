import { urlOf } from "../../lib/web-address.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { allowedByOperator } from "../../net/guarded-fetch.ts";
import { member } from "../../lib/foreign-json.ts";
import type { Caller } from "../accounts/sessions.ts";
import { asksFirstOf, marksOfServer, serverOf } from "./ask-first.ts";
import { type ConnectionKind, isModelKind, KIND_INFO, ownBaseUrl } from "./kinds.ts";
import { toolConnections } from "./targets.ts";
import { isProgramUrl, mayUse, noSuchProgram, programAt } from "./programs.ts";
import { hasCredential, openSealed } from "./sealed.ts";

const MAX_CONFIG_BYTES = 8_192;
/** Addresses that every parser reads the same way: a URL parser drops or corrects other characters without a word. */
const BASE_URL = /^https?:\/\/[^\s\p{C}\\#@/?]+(?:[/?][^\s\p{C}\\#]*)?$/iu;

/**
 * Throws for a connection that lacks what its kind needs. One made by OAuth may be without a token until it is
 * connected again.
 */
export function refuseIncomplete(app: App, user: UserRow, row: ConnectionRow): void {
  const info = KIND_INFO[row.kind as ConnectionKind];
  if (info.needs_credential && row.auth === "key" && !hasCredential(app, row))
    throw invalid(
      "body.credential",
      "missing",
      `A connection to ${info.label} needs a credential (its API key or token).`,
    );
  if (info.needs_base_url && row.base_url === null)
    throw invalid(
      "body.base_url",
      "missing",
      info.category === "mcp"
        ? "A connection to an MCP server needs its address (`base_url`), such as https://tools.example.com/mcp."
        : "This kind of connection needs an address (`base_url`), such as https://models.example.com/v1.",
    );
  if (row.kind === "mcp" && isProgramUrl(row.base_url)) refuseClosedProgram(app, user, row.base_url);
  else if (row.base_url !== null) refuseBadUrl(app, row.base_url);
}

/**
 * Throws where an API key would take tools off the list of those about which the owner is asked first: whoever can have a model run
 * must not be able to have it run unasked. Throws as well for a list on a model, which has no tools.
 */
export function refuseUnasked(
  { session }: Pick<Caller, "session">,
  before: ConnectionRow,
  { ask_tools }: { ask_tools?: string[] },
): void {
  if (ask_tools === undefined) return;
  if (isModelKind(before.kind) && ask_tools.length > 0)
    throw invalid(
      "body.ask_tools",
      "no_tools",
      "A connection to a model has no tools of its own to ask about.",
    );
  const gone = asksFirstOf(before).filter((name) => !ask_tools.includes(name));
  if (session === null && gone.length > 0)
    throw new AppError(
      "session_required",
      `An API key cannot take ${gone.map((name) => `"${name}"`).join(", ")} off the tools to ask about first (\`ask_tools\`): it is for somebody who has signed in.`,
      {
        fix: "Change it in the dashboard, on the page of the connection, or send what is there already along.",
      },
    );
}

/**
 * Throws where an API key would take such tools off the list by deleting their connection, or by having it lead to another server:
 * a new one to the same server would have none.
 */
export function refuseUnmarked(
  { session }: Pick<Caller, "session">,
  before: ConnectionRow,
  after?: ConnectionRow,
): void {
  const marked = asksFirstOf(before);
  if (session !== null || marked.length === 0) return;
  if (after !== undefined && serverOf(after) === serverOf(before)) return;
  const what = after === undefined ? "delete this connection" : "have this connection lead to another server";
  throw new AppError(
    "session_required",
    `An API key cannot ${what}, as its owner is asked first about ${marked.map((name) => `"${name}"`).join(", ")} of it (\`ask_tools\`): it is for somebody who has signed in.`,
    { fix: "Do it in the dashboard, on the page of the connection, or make another connection." },
  );
}

/**
 * Throws where an API key would change the secrets of a connection whose calls its owner is asked about: what they allow would be done
 * in another account than the one that they know it by.
 */
export async function refuseSwapped(
  app: App,
  tx: Db,
  { session, user }: Pick<Caller, "session" | "user">,
  { before, after }: { before: ConnectionRow; after: ConnectionRow },
): Promise<void> {
  if (session !== null || after.secrets_id === before.secrets_id) return;
  const why =
    marksOfServer(await toolConnections(tx, { user_id: user.id }), before).length > 0
      ? "its owner is asked first about tools of it (`ask_tools`)"
      : (await isAskedAbout(app, tx, before))
        ? "a call of it waits for its owner's yes"
        : null;
  if (why === null) return;
  throw new AppError(
    "session_required",
    `An API key cannot change the credential or the headers of this connection, as ${why}: it is for somebody who has signed in.`,
    { fix: "Do it in the dashboard, on the page of the connection." },
  );
}

/** Whether a call of a connection waits for a yes, or for being made after one. */
async function isAskedAbout(app: App, tx: Db, { id, user_id }: ConnectionRow): Promise<boolean> {
  const waits = await tx
    .selectFrom("approvals")
    .select("id")
    .where("user_id", "=", user_id)
    .where("connection_id", "=", id)
    .where("state", "in", ["pending", "approved"])
    .where("expires_at", ">", app.calmNow())
    .executeTakeFirst();
  return waits !== undefined;
}

/** Throws for a program that is not open to the account: the operator decides what runs on this machine. */
function refuseClosedProgram(app: App, user: UserRow, base_url: string): void {
  const program = programAt(app, base_url);
  if (program === undefined || !mayUse(app, user, program))
    throw invalid("body.base_url", "unknown_program", noSuchProgram(base_url));
}

/**
 * Throws if stored secrets would go to another address: whoever holds an API key of the account could otherwise have
 * them sent to a server of their own.
 */
export function refuseMovedSecrets(
  app: App,
  { before, after }: { before: ConnectionRow; after: ConnectionRow },
  given: { credential?: string; headers?: Record<string, string>; config?: unknown },
): void {
  refuseMovedGrant(before, after);
  if (originOf(app, before) === originOf(app, after)) return;
  const words =
    "The new address (`base_url`) is on another server, which the stored secrets were not meant for.";
  if (given.credential === undefined && hasCredential(app, after))
    throw invalid("body.credential", "needed_again", `${words} Send the credential for it as well.`);
  const { headers, client_secret } = openSealed(app, after);
  if (given.headers === undefined && Object.keys(headers).length > 0)
    throw invalid("body.headers", "needed_again", `${words} Send the headers for it as well, or {}.`);
  if (client_secret !== undefined && member(given.config, "client_secret") === undefined)
    throw invalid("body.config", "needed_again", `${words} Send the config for it as well.`);
}

/** Throws if a grant would go to another address than the one it was given for (RFC 8707). */
function refuseMovedGrant(before: ConnectionRow, after: ConnectionRow): void {
  if (after.auth === "oauth" && before.base_url !== after.base_url)
    throw invalid(
      "body.base_url",
      "immutable",
      "This connection was authorised for its address. Make a new connection for another one.",
    );
}

export function refuseLargeConfig(text: string): void {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    throw invalid("body.config", "too_large", `config must be at most ${MAX_CONFIG_BYTES} bytes of JSON.`);
}

function refuseBadUrl(app: App, text: string): void {
  const url = BASE_URL.test(text) ? urlOf(text) : null;
  if (!url)
    throw invalid(
      "body.base_url",
      "invalid_url",
      "The address must begin with http:// or https://, and have no blanks, user name, password or fragment.",
    );
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "http:" && !allowedByOperator(host, host, app.config.egress.allow))
    throw httpsRequired(host);
}

function httpsRequired(host: string): AppError {
  const message = `The address must be https; plain http works only for hosts that the operator lists in egress.allow, and "${host}" is not among them.`;
  return new AppError("validation_error", message, {
    faults: [{ path: "body.base_url", code: "https_required", message }],
    fix: `Whoever runs this server writes allow = ["${host}"] under [egress] into its configuration, and restarts it.`,
  });
}

function originOf(app: App, row: ConnectionRow): string {
  const url = row.base_url ?? ownBaseUrl(app, row.kind as ConnectionKind);
  return urlOf(url)?.origin ?? "";
}
