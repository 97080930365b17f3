import { Elysia, t } from "elysia";
import { findSession } from "../accounts/sessions.ts";
import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { authenticated, unauthenticated } from "../http/auth.ts";
import { cookieNamed, OAUTH_COOKIE, oauthCookie, sessionCookie } from "../http/cookies.ts";
import { describe } from "../http/describe.ts";
import { arrive, type Arrival } from "./callback.ts";
import { pageResponse } from "./callback-page.ts";
import { connectProvider, type Departure } from "./connect.ts";
import { clientDocument } from "./mcp-oauth-client.ts";
import { connectMcp, storeMcp } from "./mcp-oauth.ts";
import type { ReturningBrowser } from "./oauth-states.ts";
import { providerNamed } from "./providers.ts";
import { ClientDocumentShape, DepartureShape } from "./shapes.ts";
import { storeProvider } from "./store-provider.ts";

const NO_STORE = { "cache-control": "no-store" };
const HTML = "text/html";

const said = (description: string) => t.Optional(t.String({ description }));
const callbackQuery = t.Object({
  code: said("What becomes a token."),
  state: said("Names the round trip that ends here."),
  error: said("Why there is no code."),
  iss: said("Who answers (RFC 9207)."),
});
const providerParams = t.Object({
  provider: t.String({
    description: "`notes`, `codehost-a`, `codehost-b` or `sheets`.",
    examples: ["notes"],
  }),
});

const CALLBACK_ANSWERS = {
  200: { content_type: HTML, words: "A page that leads back to your connections." },
  400: { content_type: HTML, words: "A page that says why nothing was connected." },
};

const DESCRIBED = {
  connect: describe({
    tag: "Integrations",
    summary: "Connect an account",
    description:
      "Gives the address of the provider's consent page. Once you agree there, the account is among your connections; one that is there already gets new tokens.",
    answers: { 200: DepartureShape },
    errors: ["oauth_not_configured"],
  }),
  callback: describe({
    tag: "Integrations",
    summary: "Come back from a provider",
    description: "For browsers: where a provider's consent page leads to.",
    answers: CALLBACK_ANSWERS,
    open: true,
  }),
  connectMcp: describe({
    tag: "Integrations",
    summary: "Authorise an MCP server",
    description:
      "Finds the server's authorization server, becomes a client there, and gives the address of its consent page.",
    answers: { 200: DepartureShape },
    errors: ["mcp_oauth_unavailable"],
  }),
  callbackMcp: describe({
    tag: "Integrations",
    summary: "Come back from an MCP server's authorization server",
    description: "For browsers: where its consent page leads to.",
    answers: CALLBACK_ANSWERS,
    open: true,
  }),
  clientDocument: describe({
    tag: "Integrations",
    summary: "This server as an OAuth client",
    description:
      "For authorization servers that take the address of such a document for a client id. 404 unless this server has a public https address.",
    answers: { 200: ClientDocumentShape },
    errors: ["not_found"],
    open: true,
  }),
};

export function integrationRoutes(app: App) {
  return new Elysia().use(publicRoutes(app)).use(ownRoutes(app));
}

function ownRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/integrations/:provider/connect",
      async ({ user, session, params, set }) => {
        const departure = await connectProvider(app, { user, session }, params.provider);
        Object.assign(set.headers, headersOf(app, departure));
        return answerOf(departure);
      },
      { params: providerParams, ...DESCRIBED.connect },
    )
    .post(
      "/integrations/mcp/:connection_id/connect",
      async ({ user, session, params, set }) => {
        const departure = await connectMcp(app, { user, session }, params.connection_id);
        Object.assign(set.headers, headersOf(app, departure));
        return answerOf(departure);
      },
      { params: t.Object({ connection_id: t.String({ format: "uuid" }) }), ...DESCRIBED.connectMcp },
    );
}

function publicRoutes(app: App) {
  return new Elysia()
    .use(unauthenticated())
    .get(
      "/integrations/:provider/callback",
      async ({ params, query, request }) => {
        const kind = providerNamed(params.provider);
        const browser = await browserOf(app, request.headers);
        const arrival = await arrive(app, { provider: kind, query, browser }, (granted) =>
          storeProvider(app, kind, granted),
        );
        return pageOf(app, kind, arrival);
      },
      { params: providerParams, query: callbackQuery, ...DESCRIBED.callback },
    )
    .get(
      "/integrations/mcp/callback",
      async ({ query, request }) => {
        const browser = await browserOf(app, request.headers);
        const arrival = await arrive(app, { provider: "mcp", query, browser }, (granted) =>
          storeMcp(app, granted),
        );
        return pageOf(app, "mcp", arrival);
      },
      { query: callbackQuery, ...DESCRIBED.callbackMcp },
    )
    .get(
      "/integrations/mcp/client-metadata.json",
      () => {
        const document = clientDocument(app);
        if (document) return document;
        throw new AppError("not_found", "This server has no public https address, so it is no such client.");
      },
      DESCRIBED.clientDocument,
    );
}

function headersOf(app: App, { cookie }: Departure): Record<string, string> {
  return { ...NO_STORE, ...(cookie === null ? {} : { "set-cookie": oauthCookie(app, cookie) }) };
}

function answerOf({ authorize_url }: Departure) {
  return { authorize_url, url: authorize_url };
}

async function browserOf(app: App, headers: Headers): Promise<ReturningBrowser> {
  const value = sessionCookie(headers);
  const found = value === undefined ? undefined : await findSession(app, value);
  return { cookie: cookieNamed(headers, OAUTH_COOKIE) ?? "", user_id: found?.user.id ?? null };
}

const TITLES: Record<Arrival["outcome"], string> = {
  connected: "Connected",
  declined: "Not connected",
  failed: "Not connected",
};

function pageOf(app: App, provider: string, { outcome, message }: Arrival): Response {
  const back = `${app.base_url}/app/connections`;
  return pageResponse({
    status: outcome === "failed" ? 400 : 200,
    title: TITLES[outcome],
    message,
    onwards: outcome === "connected" ? `${back}?connected=${provider}` : null,
    back,
  });
}
