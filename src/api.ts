import { Elysia, NotFoundError, ParseError, ValidationError } from "elysia";
import { refusalOfDeleted } from "./resources/accounts/accounts.ts";
import { adminRoutes } from "./operation/admin/routes.ts";
import { accountRoutes } from "./resources/accounts/routes.ts";
import type { App } from "./app.ts";
import { isMissingParent } from "./db/database.ts";
import type { UserRow } from "./db/schema.ts";
import { isStorageFault } from "./db/storage-faults.ts";
import { billingRoutes } from "./resources/billing/routes.ts";
import { connectionRoutes } from "./resources/connections/routes.ts";
import { contactRoutes } from "./resources/contacts/routes.ts";
import { contextRoutes } from "./resources/contexts/routes.ts";
import { conversationRoutes } from "./resources/conversations/routes.ts";
import { domainRoutes, mtaStsRoutes } from "./resources/domains/routes.ts";
import { AppError } from "./errors.ts";
import { exportRoutes } from "./operation/export/routes.ts";
import { addLogField, withLogFields } from "./lib/log.ts";
import { inboundRoutes } from "./inbound/routes.ts";
import { integrationRoutes } from "./resources/integrations/routes.ts";
import { inboxRoutes } from "./resources/inboxes/routes.ts";
import { messageRoutes } from "./resources/messages/routes.ts";
import { approvalRoutes } from "./resources/approvals/routes.ts";
import { scheduleRoutes } from "./resources/schedules/routes.ts";
import { recipeRoutes } from "./resources/recipes/routes.ts";
import { inboxTestRoutes } from "./pipeline/inbox-test-routes.ts";
import { callRoutes } from "./pipeline/routes.ts";
import { webhookRoutes } from "./resources/webhooks/routes.ts";
import { API_VERSION } from "./lib/version.ts";
import { forgetBody } from "./http/body.ts";
import { forgetCaller } from "./http/callers.ts";
import { problemOf, STATUS, storageFault } from "./http/errors.ts";
import { badJson } from "./http/json-text.ts";
import { challengeAnswer } from "./http/challenges.ts";
import { corsHook } from "./http/cors.ts";
import { dashboardRoutes } from "./http/dashboard.ts";
import { docsRoutes } from "./http/docs.ts";
import { type Health, healthRoutes } from "./http/health.ts";
import { endTurn } from "./http/in-hand.ts";
import { type HttpDoor, listen } from "./http/listen.ts";
import { metricsRoutes } from "./http/metrics.ts";
import { allowedMethods, clientAddress, refuseWithoutHost, requestId } from "./http/request.ts";
import { faultsOf } from "./http/validation.ts";
import { warningsHook, warningsOf, withUnknown } from "./http/warnings.ts";

/** The whole HTTP interface, not yet listening; tests call it with requests. */
export function createHttp(app: App, health: Health) {
  const root = createRoot(app);
  const seen = new WeakMap<Request, Caller>();
  const http = root
    .wrap((handle) => (request: Request) => untilAnswered(request, async () => handle(request)))
    .onRequest(({ request, set }) => {
      app.upkeep.readAnew();
      const request_id = requestId(request);
      addLogField("request_id", request_id);
      Object.assign(set.headers, securityHeaders(app), { "x-request-id": request_id });
      // Noted now: once the answer has been sent, the socket no longer tells the address, nor do the headers always.
      if (app.metrics.on || app.log.isLevelEnabled("debug")) {
        const client = clientAddress(app, { request, server: http.server });
        seen.set(request, { client, request_id, began: performance.now() });
      }
      refuseWithoutHost(request);
    })
    .onError(async (context) => {
      const { error, set, request } = context;
      const gone = await refusalOfGone(app, context);
      const known = gone ?? withUnknown(set.headers, asAppError(http.routes, error, request));
      if (known.code === "internal") app.log.error({ err: error }, "request failed");
      // Other refusals only the caller can mend, and they are not logged. This one the operator can mend too, by the
      // plan.
      if (known.code === "storage_full") app.log.info(known.extras.members, "call refused: storage_full");
      set.status = STATUS[known.code];
      app.metrics.count("mailwright_http_refusals_total", { code: known.code });
      return problemResponse(app, known, set.headers);
    })
    .onAfterResponse(({ request, set }) => {
      const caller = seen.get(request);
      if (caller) noteAnswer(app, { request, status: set.status, caller });
    })
    .use(warningsHook(() => root.routes))
    .use(healthRoutes(health))
    .use(docsRoutes(app, () => root.routes))
    .use(dashboardRoutes())
    .use(callRoutes(app))
    .use(messageRoutes(app))
    .use(inboxRoutes(app))
    .use(inboxTestRoutes(app))
    .use(connectionRoutes(app))
    .use(integrationRoutes(app))
    .use(accountRoutes(app))
    .use(exportRoutes(app))
    .use(contextRoutes(app))
    .use(conversationRoutes(app))
    .use(domainRoutes(app))
    .use(mtaStsRoutes(app))
    .use(recipeRoutes(app))
    .use(scheduleRoutes(app))
    .use(approvalRoutes(app))
    .use(billingRoutes(app))
    .use(webhookRoutes(app))
    .use(contactRoutes(app))
    .use(inboundRoutes(app))
    .use(adminRoutes(app, health));
  if (app.config.metrics.token !== "") root.use(metricsRoutes(app));
  const { cors_origins, tls } = app.config.server;
  if (tls === "acme") root.onRequest(({ request }) => challengeAnswer(app, request));
  if (cors_origins.length > 0) root.onRequest(corsHook(cors_origins, () => root.routes));
  return http;
}

/**
 * When the answer is made, whatever it is, the memory of the request's body and its turn are given back; no answer
 * waits for that.
 */
async function untilAnswered<Answer>(request: Request, answer: () => Promise<Answer>): Promise<Answer> {
  try {
    return await withLogFields({}, answer);
  } finally {
    endTurn(request);
    forgetBody(request);
    forgetCaller(request);
  }
}

export function startHttp(app: App, health: Health): Promise<HttpDoor> {
  return listen(app, createHttp(app, health));
}

function createRoot(app: App) {
  return new Elysia({
    // Not the default, which drops unknown members as well, but reads a number or a text as an empty object.
    normalize: "typebox",
    aot: true,
    // `true`: Elysia looks for the path behind the eleventh character of a URL; `false`: behind the seventh, for plain
    // http alone.
    handler: { standardHostname: app.config.server.tls !== "off" },
  });
}

interface Caller {
  client: string;
  request_id: string;
  began: number;
}

/** Counts a request that has been answered, and says so in the log. */
function noteAnswer(
  app: App,
  { request, status, caller }: { request: Request; status: number | string | undefined; caller: Caller },
): void {
  const { method, url } = request;
  const { began, ...from } = caller;
  const seconds = (performance.now() - began) / 1_000;
  const labels = { method, status: `${String(status ?? 200)[0]}xx` };
  app.metrics.time("mailwright_http_request_seconds", labels, seconds);
  app.log.debug({ method, path: URL.parse(url)?.pathname, status, ...from }, "request");
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
  // Set by `authenticated`, if the request got that far.
  const { error, user } = context as { error: unknown; user?: UserRow };
  return user && isMissingParent(error) ? refusalOfDeleted(app.db, user) : undefined;
}

function asAppError(routes: { path: string; method: string }[], error: unknown, request: Request): AppError {
  if (error instanceof AppError) return error;
  // Elysia wraps what is thrown while a body is read.
  if (error instanceof ParseError) {
    if (isStorageFault(error.cause)) return storageFault(error.cause);
    return error.cause instanceof AppError ? error.cause : badJson("The body could not be read to its end.");
  }
  if (error instanceof ValidationError) return faultsOf(error);
  if (isStorageFault(error)) return storageFault(error);
  if (!(error instanceof NotFoundError))
    return new AppError(
      "internal",
      "Something went wrong on the server. The log says more under this request id.",
    );
  return nothingThere(request, routes);
}

/** Says what is not at a path, and where it is. */
function nothingThere(request: Request, routes: Parameters<typeof allowedMethods>[0]): AppError {
  const { pathname } = new URL(request.url);
  if (/\/\/./.test(pathname))
    return new AppError("not_found", `There is nothing at ${pathname.slice(0, 200)}: an id in it is empty.`);
  const allowed = allowedMethods(routes, pathname);
  const namesake = pathname.startsWith("/v1/") ? pathname.slice("/v1".length) : `/v1${pathname}`;
  const elsewhere = allowedMethods(routes, namesake).includes(request.method)
    ? `${request.method} ${namesake.slice(0, 200)} is there`
    : undefined;
  if (allowed.length === 0)
    return new AppError(
      "not_found",
      `There is nothing at ${pathname.slice(0, 200)}.`,
      elsewhere === undefined ? {} : { fix: `${elsewhere}.` },
    );
  return new AppError("method_not_allowed", `${request.method} is not possible here.`, {
    fix: [`Use ${allowed.join(" or ")}.`, ...(elsewhere === undefined ? [] : [`${elsewhere} as well.`])].join(
      " ",
    ),
    members: { allow: allowed.join(", ") },
  });
}

function problemResponse(app: App, error: AppError, sent: Record<string, unknown>): Response {
  const request_id = String(sent["x-request-id"]);
  const warnings = warningsOf(sent);
  const problem = {
    ...problemOf(error, { base_url: app.base_url, request_id }),
    ...(warnings ? { warnings } : {}),
  };
  const headers = new Headers({ "content-type": "application/problem+json" });
  for (const [name, value] of Object.entries(sent)) headers.set(name, String(value));
  headers.set("content-type", "application/problem+json");
  if (problem.status === 401) headers.set("www-authenticate", 'ApiKey realm="mailwright"');
  // RFC 9110 §15.5.9: the rest of the body is not waited for.
  if (error.code === "request_timeout") headers.set("connection", "close");
  if (error.code === "method_not_allowed") headers.set("allow", String(error.extras.members?.["allow"]));
  if (error.extras.retry_after_seconds !== undefined)
    headers.set("retry-after", String(error.extras.retry_after_seconds));
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}
