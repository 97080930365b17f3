import { Elysia, NotFoundError, ParseError, ValidationError } from "elysia";
import { refusalOfDeleted } from "../accounts/accounts.ts";
import { accountRoutes } from "../accounts/routes.ts";
import type { App } from "../app.ts";
import { isMissingParent, isStorageFault } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { splitListen } from "../config-forms.ts";
import { loadCertificate } from "../smtp/certificate.ts";
import { billingRoutes } from "../billing/routes.ts";
import { connectionRoutes } from "../connections/routes.ts";
import { contactRoutes } from "../contacts/routes.ts";
import { contextRoutes } from "../contexts/routes.ts";
import { conversationRoutes } from "../conversations/routes.ts";
import { domainRoutes } from "../domains/routes.ts";
import { AppError } from "../errors.ts";
import { listenFault } from "../lib/start-faults.ts";
import { integrationRoutes } from "../integrations/routes.ts";
import { inboxRoutes } from "../inboxes/routes.ts";
import { messageRoutes } from "../messages/routes.ts";
import { recipeRoutes } from "../recipes/routes.ts";
import { routingRoutes } from "../routing/routes.ts";
import { webhookRoutes } from "../webhooks/routes.ts";
import { API_VERSION } from "../version.ts";
import { problemOf, STATUS } from "./errors.ts";
import { badJson } from "./body.ts";
import { corsHook } from "./cors.ts";
import { dashboardRoutes } from "./dashboard.ts";
import { docsRoutes } from "./docs.ts";
import { type Health, healthRoutes } from "./health.ts";
import { allowedMethods, clientAddress, requestId } from "./request.ts";
import { faultsOf } from "./validation.ts";

/** Bun closes a connection that sends more, before our own cap can explain itself. */
const MAX_REQUEST_BYTES = 64 * 1_048_576;
const IDLE_SECONDS = 240;
const STORAGE_RETRY_SECONDS = 30;

export interface HttpDoor extends AsyncDisposable {
  /** `http://host:port` it listens on. */
  url: string;
}

/** The whole HTTP interface, not yet listening; tests call it with requests. */
export function createHttp(app: App, health: Health) {
  // Not the default way to drop unknown members: that one reads a number or a text as an empty object.
  const root = new Elysia({ normalize: "typebox", aot: true });
  const seen = new WeakMap<Request, { client: string; request_id: string }>();
  const http = root
    .onRequest(({ request, set }) => {
      const request_id = requestId(request);
      Object.assign(set.headers, securityHeaders(app), { "x-request-id": request_id });
      // Once the answer has gone, the socket no longer tells the address, nor always the headers their names.
      if (app.log.isLevelEnabled("debug"))
        seen.set(request, { client: clientAddress(app, { request, server: http.server }), request_id });
    })
    .onError(async (context) => {
      const { error, set, request } = context;
      const known = (await refusalOfGone(app, context)) ?? asAppError(http.routes, error, request);
      if (known.code === "internal")
        app.log.error({ err: error, request_id: set.headers["x-request-id"] }, "request failed");
      set.status = STATUS[known.code];
      return problemResponse(app, known, set.headers);
    })
    .onAfterResponse(({ request, set }) => {
      const caller = seen.get(request);
      if (!caller) return;
      const { pathname: path } = new URL(request.url);
      app.log.debug({ method: request.method, path, status: set.status, ...caller }, "request");
    })
    .use(healthRoutes(health))
    .use(docsRoutes(() => root.routes))
    .use(dashboardRoutes())
    .use(routingRoutes(app))
    .use(messageRoutes(app))
    .use(inboxRoutes(app))
    .use(connectionRoutes(app))
    .use(integrationRoutes(app))
    .use(accountRoutes(app))
    .use(contextRoutes(app))
    .use(conversationRoutes(app))
    .use(domainRoutes(app))
    .use(recipeRoutes(app))
    .use(billingRoutes(app))
    .use(webhookRoutes(app))
    .use(contactRoutes(app));
  const { cors_origins } = app.config.server;
  if (cors_origins.length > 0) root.onRequest(corsHook(cors_origins, () => root.routes));
  return http;
}

export async function startHttp(app: App, health: Health): Promise<HttpDoor> {
  const { host, port } = splitListen(app.config.server.listen) ?? { host: "0.0.0.0", port: 0 };
  const { tls } = app.config.server;
  const certificate = tls === "files" ? { tls: await loadCertificate(app.config) } : {};
  const http = createHttp(app, health);
  try {
    http.listen({
      hostname: host,
      port,
      // Elysia's own default lets a second server share the port without a word.
      reusePort: false,
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: MAX_REQUEST_BYTES,
      ...certificate,
    });
  } catch (error) {
    throw listenFault(error, { setting: "server.listen", value: app.config.server.listen });
  }
  return {
    url: `${tls === "files" ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${http.server?.port}`,
    async [Symbol.asyncDispose]() {
      await http.server?.stop(false);
    },
  };
}

function securityHeaders(app: App): Record<string, string> {
  return {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "service-version": API_VERSION,
    ...(app.base_url.startsWith("https:") ? { "strict-transport-security": "max-age=31536000" } : {}),
  };
}

/** 401 when what was to be stored has no owner any more: the account was deleted while the request was under way. */
async function refusalOfGone(app: App, context: { error: unknown }): Promise<AppError | undefined> {
  // Of `authenticated`, if it got that far.
  const { error, user } = context as { error: unknown; user?: UserRow };
  return user && isMissingParent(error) ? refusalOfDeleted(app.db, user) : undefined;
}

function asAppError(routes: { path: string; method: string }[], error: unknown, request: Request): AppError {
  if (error instanceof AppError) return error;
  // Elysia wraps what is thrown while a body is read.
  if (error instanceof ParseError)
    return error.cause instanceof AppError ? error.cause : badJson("The body could not be read to its end.");
  if (error instanceof ValidationError) return faultsOf(error);
  if (isStorageFault(error)) return storageFault();
  if (!(error instanceof NotFoundError))
    return new AppError(
      "internal",
      "Something went wrong on the server. The log says more under this request id.",
    );
  const { pathname } = new URL(request.url);
  if (/\/\/./.test(pathname))
    return new AppError("not_found", `There is nothing at ${pathname.slice(0, 200)}: an id in it is empty.`);
  const allowed = allowedMethods(routes, pathname);
  if (allowed.length === 0)
    return new AppError("not_found", `There is nothing at ${pathname.slice(0, 200)}.`);
  return new AppError("method_not_allowed", `${request.method} is not possible here.`, {
    fix: `Use ${allowed.join(" or ")}.`,
    members: { allow: allowed.join(", ") },
  });
}

function storageFault(): AppError {
  return new AppError("unavailable", "The server cannot store anything right now.", {
    fix: "Try again in a minute. If you run this server: see whether its disk is full.",
    retry_after_seconds: STORAGE_RETRY_SECONDS,
  });
}

function problemResponse(app: App, error: AppError, sent: Record<string, unknown>): Response {
  const request_id = String(sent["x-request-id"]);
  const problem = problemOf(error, { base_url: app.base_url, request_id });
  const headers = new Headers({ "content-type": "application/problem+json" });
  for (const [name, value] of Object.entries(sent)) headers.set(name, String(value));
  headers.set("content-type", "application/problem+json");
  if (problem.status === 401) headers.set("www-authenticate", 'ApiKey realm="mailwright"');
  if (error.code === "method_not_allowed") headers.set("allow", String(error.extras.members?.["allow"]));
  if (error.extras.retry_after_seconds !== undefined)
    headers.set("retry-after", String(error.extras.retry_after_seconds));
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}
