import type { App } from "../app.ts";
import type { SessionRow, UserRow } from "../db/schema.ts";
import { consentUrl } from "./oauth-client.ts";
import { keepState } from "./oauth-states.ts";
import { consentParameters, providerNamed, providerServer } from "./providers.ts";

/** Where the browser goes to ask the provider, and the cookie that lets it come back; null for a caller with a key. */
export interface Departure {
  authorize_url: string;
  cookie: string | null;
}

export interface Traveller {
  user: UserRow;
  session: SessionRow | null;
}

export async function connectProvider(app: App, caller: Traveller, name: string): Promise<Departure> {
  const kind = providerNamed(name);
  const server = providerServer(app, kind);
  const { url, state, verifier } = await consentUrl(server, redirectUri(app, kind), consentParameters(kind));
  const cookie = browserMark(app, caller.session);
  const trip = { verifier, server, base_url: null };
  await keepState(app, caller.user, { state, provider: kind, connection_id: null, cookie, trip });
  return { authorize_url: url, cookie };
}

/** One for each place that codes come from, so that none can pass its codes off as another's. */
export function redirectUri(app: App, provider: string): string {
  return `${app.base_url}/integrations/${provider}/callback`;
}

/** The same for all pages of a session, so that several can be open at once. */
export function browserMark(app: App, session: SessionRow | null): string | null {
  return session && app.secrets.hmac("oauth-browser", session.id).toString("base64url");
}
