import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { consentUrl } from "./oauth-client.ts";
import { keepState } from "./oauth-states.ts";
import { consentParameters, providerNamed, providerServer } from "./providers.ts";

/** Returns where the browser goes to ask the provider. */
export async function connectProvider(app: App, caller: Caller, name: string): Promise<string> {
  const kind = providerNamed(name);
  const server = providerServer(app, kind);
  const { url, state, verifier } = await consentUrl(server, redirectUri(app, kind), consentParameters(kind));
  const trip = { verifier, server, base_url: null };
  await keepState(app, caller, { state, provider: kind, connection_id: null, trip });
  return url;
}

/** The redirect URI of a provider. Each has its own, so that none can pass its codes off as those of another. */
export function redirectUri(app: App, provider: string): string {
  return `${app.base_url}/integrations/${provider}/callback`;
}
