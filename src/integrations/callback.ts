import type { App } from "../app.ts";
import type { OAuthStateRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { quote } from "../lib/quote.ts";
import { redirectUri } from "./connect.ts";
import { exchangeCode, type Tokens } from "./oauth-client.ts";
import { type ReturningBrowser, type RoundTrip, takeState } from "./oauth-states.ts";

/** What the provider's redirect may carry. */
export interface CallbackQuery {
  code?: string | undefined;
  state?: string | undefined;
  error?: string | undefined;
  iss?: string | undefined;
}

/** How a round trip ended, in words for the person in front of the browser. */
export interface Arrival {
  outcome: "connected" | "declined" | "failed";
  message: string;
}

export interface Returning {
  /** Of the path: an integration kind, or `mcp`. */
  provider: string;
  query: CallbackQuery;
  browser: ReturningBrowser;
}

/** A round trip whose tokens are there, to be stored. */
export interface Granted {
  row: OAuthStateRow;
  trip: RoundTrip;
  tokens: Tokens;
}

const STALE: Arrival = {
  outcome: "failed",
  message:
    "This page was opened too late, a second time, or in another browser than the one that started. Go back and connect again.",
};

/** Ends a round trip: `store` keeps what the code was exchanged for, and tells what it is called. */
export async function arrive(
  app: App,
  returning: Returning,
  store: (granted: Granted) => Promise<string>,
): Promise<Arrival> {
  const { provider, query, browser } = returning;
  const taken = await takeState(app, provider, query.state ?? "", browser);
  if (!taken) return STALE;
  const early = endWithoutCode(query);
  if (early) return early;
  const { row, ...trip } = taken;
  const redirect_uri = redirectUri(app, provider);
  const { code = "", iss } = query;
  const exchanged = await exchangeCode(app, trip.server, {
    code,
    iss,
    verifier: trip.verifier,
    redirect_uri,
  });
  if (!exchanged.ok) return failed(`The code could not be exchanged for a token. ${exchanged.message}`);
  try {
    const name = await store({ row, trip, tokens: exchanged.tokens });
    return { outcome: "connected", message: `${name} is connected.` };
  } catch (error) {
    // Over the plan's cap, for example: the person should know why.
    if (error instanceof AppError && error.code !== "internal") return failed(error.message);
    throw error;
  }
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
