import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { INTEGRATION_KINDS, type IntegrationKind, INTEGRATIONS } from "../../config/integrations.ts";
import { KIND_INFO } from "../connections/kinds.ts";
import type { OAuthServer } from "../connections/sealed.ts";
import { AppError } from "../../errors.ts";

/** The provider of a path; `not_found` for what is none. */
export function providerNamed(name: string): IntegrationKind {
  if (Object.hasOwn(INTEGRATIONS, name)) return name as IntegrationKind;
  throw new AppError("not_found", "There is no such provider.", {
    fix: `The providers are ${INTEGRATION_KINDS.join(", ")}.`,
  });
}

/** The provider as it is configured; throws `oauth_not_configured` where something is missing. */
export function providerServer(app: App, kind: IntegrationKind): OAuthServer {
  const settings = app.config.integrations[kind];
  const missing = missingKeys(kind, settings);
  if (missing.length > 0) throw notConfigured(kind, missing);
  const { scope, format, pkce, auth, revoke, ...provider } = INTEGRATIONS[kind].consent;
  const token_endpoint = settings.token_url || provider.token_url;
  return {
    issuer: null,
    names_itself: false,
    authorization_endpoint: settings.authorize_url || provider.authorize_url,
    token_endpoint,
    revocation_endpoint: revoke === null ? null : new URL(revoke, token_endpoint).href,
    client: { id: settings.client_id, secret: settings.client_secret, auth, registered_for: null },
    resource: null,
    scope,
    format,
    pkce,
  };
}

export function consentParameters(kind: IntegrationKind): Record<string, string> {
  return INTEGRATIONS[kind].consent.parameters;
}

/**
 * The settings that an OAuth client lacks, by their paths. An operator who names one address of a server of their own
 * has to name the others too: the rest would stay those of the public provider.
 */
export function missingKeys(
  kind: IntegrationKind,
  settings: Config["integrations"][IntegrationKind],
): string[] {
  const addresses = ["authorize_url", "token_url", "api_base"] as const;
  const own = addresses.some((key) => settings[key] !== "");
  const needed = ["client_id", "client_secret", ...(own ? addresses : [])] as const;
  return needed.filter((key) => settings[key] === "").map((key) => `integrations.${kind}.${key}`);
}

function notConfigured(kind: IntegrationKind, missing: string[]): AppError {
  return new AppError(
    "oauth_not_configured",
    `This server has no OAuth client for ${KIND_INFO[kind].label}: ${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not set.`,
    {
      fix: `Make the connection with a token of your own (\`POST /connections\` with the kind ${kind} and the token as \`credential\`)${kind === "sheets" ? "; it ends after an hour" : ""}. If you run this server, set ${missing.length === 1 ? "the key" : "the keys"}.`,
    },
  );
}
