import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import type { UserRow } from "../../db/schema.ts";

/** The scheme of addresses of programs: `stdio:files` is the one that the operator set up as `[mcp.stdio.files]`. */
const SCHEME = "stdio:";
const MAX_SHOWN_CHARS = 40;

export type Program = Config["mcp"]["stdio"][string];

export function isProgramUrl(base_url: string | null): base_url is string {
  return base_url?.startsWith(SCHEME) === true;
}

/** The programs that an account may use, with the address that a connection names. */
export function listPrograms(app: App, user: UserRow): { name: string; base_url: string }[] {
  return Object.entries(app.config.mcp.stdio)
    .filter(([, program]) => mayUse(app, user, program))
    .map(([name]) => ({ name, base_url: `${SCHEME}${name}` }));
}

export function programName(base_url: string): string {
  return base_url.slice(SCHEME.length);
}

/** The program at an address; undefined if there is none of that name. */
export function programAt(app: App, base_url: string): Program | undefined {
  const { stdio } = app.config.mcp;
  const name = programName(base_url);
  return Object.hasOwn(stdio, name) ? stdio[name] : undefined;
}

/** Administrators may use every program, other accounts those that are open to them. */
export function mayUse(app: App, user: UserRow, { accounts }: Program): boolean {
  if (user.is_admin === 1 || accounts.includes("*")) return true;
  const chosen = [app.config.auth.admin_email, ...accounts].map((address) => address.toLowerCase());
  return user.email_verified === 1 && chosen.includes(user.email.toLowerCase());
}

/** Refuses a program in the same words whether there is none or it is for others: which is nobody's business. */
export function noSuchProgram(base_url: string): string {
  const name = base_url.slice(SCHEME.length, SCHEME.length + MAX_SHOWN_CHARS);
  return `There is no tool server "${name}" here for your account. The operator of this server can set one up, or open it to you, in [mcp.stdio] of the configuration.`;
}
