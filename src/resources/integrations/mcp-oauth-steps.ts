import { urlOf } from "../../lib/web-address.ts";
import type { App } from "../../app.ts";
import { AppError } from "../../errors.ts";
import { judgeHost } from "../../net/guarded-fetch.ts";
import { networkFault } from "../../net/responses.ts";
import { askServer, type WireAnswer } from "./oauth-wire.ts";

/** The steps at which connecting may fail; part of the API. */
export type Step = "probe" | "resource_metadata" | "server_metadata" | "client_registration";

const PLACES: Record<Step, string> = {
  probe: "the MCP server",
  resource_metadata: "the server's OAuth metadata",
  server_metadata: "the authorization server",
  client_registration: "the registration of clients",
};

export function unavailable(step: Step, message: string, fix?: string): AppError {
  return new AppError("mcp_oauth_unavailable", message, {
    members: { step },
    ...(fix === undefined ? {} : { fix }),
  });
}

/** As `askServer`; an error of the network becomes a failure of the step. */
export async function askAt(
  app: App,
  step: Step,
  url: string | URL,
  init: RequestInit = {},
): Promise<WireAnswer> {
  return onTheWay(step, () => askServer(app, url, init));
}

export async function onTheWay<T>(step: Step, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = networkFault(error);
    if (fault === null) throw error;
    throw unavailable(step, `Asking ${PLACES[step]} failed. ${fault.message}`);
  }
}

/**
 * An address that a server names, once it was judged: it has to be https and public, but for what the operator
 * allows.
 */
export async function judgedUrl(app: App, step: Step, value: unknown, name: string): Promise<string> {
  const url = typeof value === "string" ? urlOf(value) : null;
  const web = url?.protocol === "https:" || url?.protocol === "http:";
  if (!url || !web || url.username + url.password + url.hash !== "")
    throw unavailable(step, `The metadata names no usable address as ${name}.`);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const { resolver: resolve, config } = app;
  const { plain_http } = await onTheWay(step, () => judgeHost(host, { resolve, allow: config.egress.allow }));
  if (url.protocol === "http:" && !plain_http)
    throw unavailable(step, `The ${name} that the metadata names, at ${url.host}, is not https.`);
  return url.href;
}
