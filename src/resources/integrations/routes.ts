import { INTEGRATION_KINDS } from "../../config/integrations.ts";
import { allOf } from "../../lib/lists.ts";
import { Elysia, t } from "elysia";
import { findSession } from "../accounts/sessions.ts";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import { AppError } from "../../errors.ts";
import { authenticated, signedIn, unauthenticated } from "../../http/auth.ts";
import { sessionCookie } from "../../http/cookies.ts";
import { type Description, describe } from "../../http/describe.ts";
import { clientAddress, type Served } from "../../http/request.ts";
import {
  type AccessPath,
  arrive,
  type Arrival,
  type Beginning,
  type Browser,
  type CallbackQuery,
  confirm,
  type Granted,
  type Returning,
} from "./callback.ts";
import { pageResponse } from "./callback-page.ts";
import { connectProvider } from "./connect.ts";
import { clientDocument } from "./mcp-oauth-client.ts";
import { connectMcp, storeMcp } from "./mcp-oauth.ts";
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
const confirmBody = t.Object({
  code: t.String({ maxLength: 16_384, description: "As the provider sent it." }),
  state: t.String({ maxLength: 200, description: "As the provider sent it." }),
  iss: t.Optional(t.String({ maxLength: 2_048, description: "As the provider sent it, if it did." })),
  proof: t.String({ maxLength: 100, description: "The proof of the page that it asked this browser." }),
});
const providerParams = t.Object({
  provider: t.String({
    description: `${allOf(
      INTEGRATION_KINDS.map((name) => `\`${name}\``),
      "or",
    )}.`,
    examples: ["notes"],
  }),
});

const CALLBACK_ANSWERS = {
  200: {
    content_type: HTML,
    words: "A page that leads back to your connections, or asks to sign in or to confirm first.",
  },
  400: { content_type: HTML, words: "A page that says why nothing was connected." },
};

const WHO_MAY_END_IT =
  "In the session that began, the account is connected at once. In another session of the same account, and for what was begun with an API key, the page asks to confirm; without a session it asks to sign in first; another account is refused. Until then nothing is exchanged or stored.";
const WHO_MAY_END_IT_WITH_MCP =
  "In a session of the account that began, the page names where you agreed and which server gets the access, and asks to confirm; without a session it asks to sign in first; another account is refused. Until then nothing is exchanged or stored.";
const CONFIRMATION = {
  tag: "Integrations",
  description: "For the page that the callback shows, and for nobody else: an API key hears 403.",
  form: true,
  answers: {
    200: { content_type: HTML, words: "A page that leads back to your connections." },
    400: CALLBACK_ANSWERS[400],
  },
  errors: ["session_required"],
} satisfies Partial<Description>;

const DESCRIBED = {
  connect: describe({
    tag: "Integrations",
    summary: "Connect an account",
    description:
      "Gives the address of the provider's consent page. Once you agree there, the account is among your connections; one that is there already gets new tokens. It ends in a browser that is signed in to your account, whoever began.",
    answers: { 200: DepartureShape },
    errors: ["oauth_not_configured"],
  }),
  callback: describe({
    tag: "Integrations",
    summary: "Come back from a provider",
    description: `For browsers: where a provider's consent page leads to. ${WHO_MAY_END_IT}`,
    answers: CALLBACK_ANSWERS,
    errors: ["rate_limited"],
    open: true,
  }),
  connectMcp: describe({
    tag: "Integrations",
    summary: "Authorise an MCP server",
    description:
      "Finds the server's authorization server, becomes a client there, and gives the address of its consent page. That page is at the site of the authorization server or of the MCP server, else 400. Back here, a page names where you agreed and who gets the access, before anything is exchanged.",
    answers: { 200: DepartureShape },
    errors: ["mcp_oauth_unavailable"],
  }),
  callbackMcp: describe({
    tag: "Integrations",
    summary: "Come back from an MCP server's authorization server",
    description: `For browsers: where its consent page leads to. ${WHO_MAY_END_IT_WITH_MCP}`,
    answers: CALLBACK_ANSWERS,
    open: true,
  }),
  confirm: describe({ ...CONFIRMATION, summary: "Confirm what a provider is connected to" }),
  confirmMcp: describe({ ...CONFIRMATION, summary: "Confirm that an MCP server is authorised" }),
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
  return new Elysia().use(publicRoutes(app)).use(ownRoutes(app)).use(confirmRoutes(app));
}

function ownRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/integrations/:provider/connect",
      async ({ caller, params, set }) => {
        const authorize_url = await connectProvider(app, caller, params.provider);
        Object.assign(set.headers, NO_STORE);
        return { authorize_url, url: authorize_url };
      },
      { params: providerParams, ...DESCRIBED.connect },
    )
    .post(
      "/integrations/mcp/:connection_id/connect",
      async ({ caller, params, set }) => {
        using _trip = await beginTrip(caller.user);
        const authorize_url = await connectMcp(app, caller, params.connection_id);
        Object.assign(set.headers, NO_STORE);
        return { authorize_url, url: authorize_url };
      },
      { params: t.Object({ connection_id: t.String({ format: "uuid" }) }), ...DESCRIBED.connectMcp },
    );
}

/** The route for the answer on the page that a callback shows to a browser which did not begin the round trip. */
function confirmRoutes(app: App) {
  return new Elysia()
    .use(signedIn(app))
    .post(
      "/integrations/:provider/confirm",
      async ({ user, session, client, params, body }) => {
        const provider = providerNamed(params.provider);
        const { proof, ...query } = body;
        const browser = { user, session, client: client() };
        const store = (granted: Granted) => storeProvider(app, provider, granted);
        return pageOf(app, provider, await confirm(app, { provider, query, browser, proof }, store));
      },
      { params: providerParams, body: confirmBody, ...DESCRIBED.confirm },
    )
    .post(
      "/integrations/mcp/confirm",
      async ({ user, session, client, body }) => {
        const { proof, ...query } = body;
        const returning = {
          provider: "mcp" as const,
          query,
          browser: { user, session, client: client() },
          proof,
        };
        return pageOf(app, "mcp", await confirm(app, returning, (granted) => storeMcp(app, granted)));
      },
      { body: confirmBody, ...DESCRIBED.confirmMcp },
    );
}

function publicRoutes(app: App) {
  return new Elysia()
    .use(unauthenticated(app))
    .get(
      "/integrations/:provider/callback",
      async ({ params, query, request, server }) => {
        const provider = providerNamed(params.provider);
        const browser = await browserOf(app, { request, server });
        const store = (granted: Granted) => storeProvider(app, provider, granted);
        return pageOf(app, provider, await arrive(app, { provider, query, browser }, store), query);
      },
      { params: providerParams, query: callbackQuery, ...DESCRIBED.callback },
    )
    .get(
      "/integrations/mcp/callback",
      async ({ query, request, server }) => {
        const browser = await browserOf(app, { request, server });
        const returning = { provider: "mcp" as const, query, browser };
        const arrival = await arrive(app, returning, (granted) => storeMcp(app, granted));
        return pageOf(app, "mcp", arrival, query);
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

async function browserOf(app: App, served: Served): Promise<Browser | null> {
  const value = sessionCookie(served.request.headers);
  const found = value === undefined ? undefined : await findSession(app, value);
  return found ? { ...found, client: clientAddress(app, served) } : null;
}

const TITLES = {
  connected: "Connected",
  later: "Connected soon",
  declined: "Not connected",
  failed: "Not connected",
};

function pageOf(
  app: App,
  provider: Returning["provider"],
  arrival: Arrival,
  query: CallbackQuery = {},
): Response {
  if (arrival.outcome === "sign_in") return signInPage(app, provider, { name: arrival.name, query });
  if (arrival.outcome === "confirm") return confirmPage(app, provider, arrival);
  const { outcome, message } = arrival;
  const link = backLink(app);
  const onwards = outcome === "connected" ? `${link.to}?connected=${provider}` : null;
  return pageResponse({
    status: outcome === "failed" ? 400 : 200,
    title: TITLES[outcome],
    messages: [message],
    onwards,
    link: { ...link, to: onwards ?? link.to },
  });
}

/** A page that leads to the sign-in, and from there back here with the provider's parameters. */
function signInPage(
  app: App,
  provider: Returning["provider"],
  { name, query }: { name: string; query: CallbackQuery },
): Response {
  const said = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const here = `/integrations/${provider}/callback?${new URLSearchParams(said).toString()}`;
  return pageResponse({
    status: 200,
    title: "Sign in to go on",
    messages: [
      `To connect ${name}, sign in to the account that began this. Then you are asked whether to go on.`,
      "It can wait until ten minutes after it was begun. If you did not begin this, close the page: nothing has happened yet.",
    ],
    main: {
      to: `${app.base_url}/app/sign-in?${new URLSearchParams({ to: here }).toString()}`,
      words: "Sign in",
    },
    link: { to: `${app.base_url}/app`, words: "Go to Mailwright" },
  });
}

function confirmPage(
  app: App,
  provider: Returning["provider"],
  { name, question }: Extract<Arrival, { outcome: "confirm" }>,
): Response {
  const { email, begun, access, fields } = question;
  return pageResponse({
    status: 200,
    title: `Connect ${name}?`,
    messages: [
      ...(access === null ? [] : wordsOfAccess(access)),
      `It becomes a connection of ${email}, and runs of this account can use it.`,
      ...(begun === null ? [] : wordsOfBeginning(begun)),
    ],
    form: { action: `${app.base_url}/integrations/${provider}/confirm`, button: "Connect", fields },
    link: { ...backLink(app), words: "Do not connect" },
  });
}

function wordsOfAccess({ asked_at, goes_to }: AccessPath): string[] {
  return [
    `You were sent to ${asked_at} to agree. Access to whatever you agreed to goes to ${goes_to}.`,
    `Did a service ask you whose data is no business of ${goes_to}? Then do not go on: nobody has the access yet.`,
  ];
}

function wordsOfBeginning({ api_key, minutes_ago }: Beginning): string[] {
  const how =
    api_key === null
      ? "in another browser that was signed in to this account"
      : `with the API key ${api_key}`;
  const when = minutes_ago === 0 ? "less than a minute ago" : `${minutes_ago} min ago`;
  return [
    `This was begun ${how}, ${when}.`,
    "Was that not you? Then do not go on: somebody else may have chosen what is to be connected.",
  ];
}

function backLink(app: App) {
  return { to: `${app.base_url}/app/connections`, words: "Go to your connections" };
}
