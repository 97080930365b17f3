import { urlOf } from "../../lib/web-address.ts";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import { KIND_INFO } from "../connections/kinds.ts";
import type { OAuthStateRow, SessionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { quote } from "../../lib/quote.ts";
import { equalBytes } from "../../lib/secrets.ts";
import { redirectUri } from "./connect.ts";
import { exchangeCode, type Tokens } from "./oauth-client.ts";
import { endTrip, findTrip, type OpenTrip, type RoundTrip } from "./oauth-states.ts";
import type { IntegrationKind } from "../../config/integrations.ts";

/** The parameters of the provider's redirect. */
export interface CallbackQuery {
  code?: string | undefined;
  state?: string | undefined;
  error?: string | undefined;
  iss?: string | undefined;
}

/** The browser that came back, with its session. */
export interface Browser {
  user: UserRow;
  session: SessionRow;
  /** The address that its request came from. */
  client: string;
}

/** How a round trip ended, or what it still needs, in words for the person in front of the browser. */
export type Arrival =
  | { outcome: "connected" | "later" | "declined" | "failed"; message: string }
  | { outcome: "sign_in"; name: string }
  | { outcome: "confirm"; name: string; question: Question };

/**
 * What the person is asked before the code is exchanged and anything is stored. `proof` binds the answer to the
 * session that was asked.
 */
export interface Question {
  email: string;
  /** Where the round trip began; null if in this very session. */
  begun: Beginning | null;
  /** The hosts that the consent goes through; null for an integration, whose consent page is known. */
  access: AccessPath | null;
  fields: { code: string; state: string; iss?: string; proof: string };
}

export interface Beginning {
  /** The API key that began it, as it is shown; null for another browser. */
  api_key: string | null;
  minutes_ago: number;
}

/** The hosts through which a person's consent goes. */
export interface AccessPath {
  /** The host of the consent page. */
  asked_at: string;
  /** The host of the tool server, which gets the token. */
  goes_to: string;
}

export interface Returning {
  /** The provider that the path names: an integration kind, or `mcp`. */
  provider: IntegrationKind | "mcp";
  query: CallbackQuery;
  /** Null if nobody is signed in with the browser. */
  browser: Browser | null;
}

/** A round trip with its tokens, which are to be stored. */
export interface Granted {
  row: OAuthStateRow;
  trip: RoundTrip;
  tokens: Tokens;
  /** The address that the browser's last request came from. */
  client: string;
}

/** Stores the tokens, and returns the name of the connection that has them; null while the disk takes no writes. */
export type Store = (granted: Granted) => Promise<{ value: string } | null>;

const STALE: Arrival = failed("This page was opened too late or a second time. Go back and connect again.");

/**
 * The outcome while tokens can only be kept in memory: a code can be exchanged once, so that losing them would need
 * another consent.
 */
const LATER: Arrival = {
  outcome: "later",
  message:
    "You agreed, and the access is there, but this server cannot write it to its disk now. It is kept in memory and written as soon as that is possible, so do not connect again: look at your connections in some minutes. If it is not there in an hour, connect again.",
};

/**
 * Ends a round trip. Whoever opens a consent page may have been lured there. So only the session that began the round
 * trip ends it at once; another browser of the same account is asked first, and one of another account is refused. A
 * tool server chooses itself where people consent, and may send them on to any other page: there everybody is asked.
 */
export async function arrive(app: App, returning: Returning, store: Store): Promise<Arrival> {
  const { provider, query, browser } = returning;
  const open = await findTrip(app, provider, query.state ?? "");
  if (!open) return STALE;
  if (browser && browser.user.id !== open.row.user_id) return refusalOfOther(browser);
  const early = endWithoutCode(query);
  if (early) return (await endTrip(app, open)) ? early : STALE;
  if (!browser) return { outcome: "sign_in", name: await nameOf(app, provider, open) };
  if (provider !== "mcp" && isBeginner(open, browser))
    return finish(app, open, { ...returning, browser, store });
  const question = questionOf(app, open, { browser, query });
  return { outcome: "confirm", name: await nameOf(app, provider, open), question };
}

/** Ends a round trip that the person in front of the browser has just confirmed. */
export async function confirm(
  app: App,
  returning: Returning & { browser: Browser; proof: string },
  store: Store,
): Promise<Arrival> {
  const { provider, query, browser, proof } = returning;
  const { state = "" } = query;
  if (!equalBytes(proof, proofOf(app, browser, state)))
    return failed(
      "This was asked in another browser, or before you signed in again. Go back and connect again.",
    );
  const open = await findTrip(app, provider, state);
  if (!open) return STALE;
  if (browser.user.id !== open.row.user_id) return refusalOfOther(browser);
  return endWithoutCode(query) ?? finish(app, open, { ...returning, store });
}

async function finish(
  app: App,
  open: OpenTrip,
  { provider, query, browser, store }: Returning & { browser: Browser; store: Store },
): Promise<Arrival> {
  // This comes before the state is used up: if there is no room now, the same page can be opened again.
  using _trip = await beginTrip(browser.user);
  if (!(await endTrip(app, open))) return STALE;
  const { row, trip } = open;
  const { code = "", iss } = query;
  const redirect_uri = redirectUri(app, provider);
  const returned = { code, iss, verifier: trip.verifier, redirect_uri };
  const exchanged = await exchangeCode(app, trip.server, returned);
  if (!exchanged.ok) return failed(`The code could not be exchanged for a token. ${exchanged.message}`);
  try {
    const stored = await store({ row, trip, tokens: exchanged.tokens, client: browser.client });
    return stored === null ? LATER : { outcome: "connected", message: `${stored.value} is connected.` };
  } catch (error) {
    // The person should know why, for example over the plan's cap.
    if (error instanceof AppError && error.code !== "internal") return failed(error.message);
    throw error;
  }
}

function isBeginner({ row }: OpenTrip, { session }: Browser): boolean {
  return session.id === row.session_id;
}

function questionOf(
  app: App,
  open: OpenTrip,
  { browser, query }: { browser: Browser; query: CallbackQuery },
): Question {
  const { code = "", state = "", iss } = query;
  const proof = proofOf(app, browser, state);
  const { row, trip } = open;
  const minutes_ago = Math.floor((app.now() - row.created) / 60);
  return {
    email: browser.user.email,
    begun: isBeginner(open, browser) ? null : { api_key: row.api_key, minutes_ago },
    access: accessPath(trip),
    fields: { code, state, ...(iss === undefined ? {} : { iss }), proof },
  };
}

function accessPath({ server, base_url }: RoundTrip): AccessPath | null {
  if (base_url === null) return null;
  return { asked_at: new URL(server.authorization_endpoint).host, goes_to: new URL(base_url).host };
}

/**
 * A proof that only a page of this server has, made for one session, so that a form of another site cannot answer for
 * the person.
 */
function proofOf(app: App, { session }: Browser, state: string): string {
  return app.secrets.hmac("oauth-confirm", `${session.id} ${state}`).toString("base64url");
}

/** The name of what is to be connected, as its owner knows it. */
async function nameOf(app: App, provider: Returning["provider"], { row, trip }: OpenTrip): Promise<string> {
  if (provider !== "mcp") return KIND_INFO[provider].label;
  const connection = await app.db
    .selectFrom("connections")
    .select("label")
    .where("id", "=", row.connection_id)
    .executeTakeFirst();
  const host = urlOf(trip.base_url ?? "")?.host ?? "";
  return `${connection?.label ?? "a tool server"} (${host})`;
}

function refusalOfOther({ user }: Browser): Arrival {
  return failed(
    `You are signed in as ${user.email}, but another account began this, so nothing was connected. If both are yours, sign out here, sign in with the other one, and connect again.`,
  );
}

function endWithoutCode({ code, error }: CallbackQuery): Arrival | undefined {
  if (error === "access_denied")
    return {
      outcome: "declined",
      message: "You did not agree, so nothing was connected and nothing has changed.",
    };
  if (error !== undefined && error !== "") return failed(`The provider said: ${quote(error, [])}`);
  return code ? undefined : failed("The provider sent no code along. Go back and connect again.");
}

function failed(message: string): Arrival {
  return { outcome: "failed", message };
}
