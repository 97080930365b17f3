import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { KIND_INFO } from "../connections/kinds.ts";
import type { OAuthServer } from "../connections/sealed.ts";
import { AppError } from "../../errors.ts";

export type IntegrationKind = keyof Config["integrations"];

/** How one provider wants to be asked, where the operator did not set up another. */
interface Provider {
  authorize_url: string;
  token_url: string;
  scope: string | null;
  /** Parameters of its own for the consent page. */
  parameters: Record<string, string>;
  auth: "client_secret_basic" | "client_secret_post";
  format: OAuthServer["format"];
  pkce: boolean;
  /** Where a token is given back (RFC 7009), beside `token_url`; null: it has a way of its own. */
  revoke: string | null;
}

const FORM = { auth: "client_secret_post", format: "form", pkce: true } as const;

const PROVIDERS: Record<IntegrationKind, Provider> = {
  notes: {
    authorize_url: "https://api.notion.com/v1/oauth/authorize",
    token_url: "https://api.notion.com/v1/oauth/token",
    scope: null,
    parameters: { owner: "user" },
    auth: "client_secret_basic",
    format: "json",
    // It refuses members of the body that its reference does not list, and lists no code_verifier.
    pkce: false,
    revoke: "revoke",
  },
  "codehost-a": {
    ...FORM,
    authorize_url: "https://github.com/login/oauth/authorize",
    token_url: "https://github.com/login/oauth/access_token",
    scope: "repo read:user",
    parameters: {},
    revoke: null,
  },
  "codehost-b": {
    ...FORM,
    authorize_url: "https://gitlab.com/oauth/authorize",
    token_url: "https://gitlab.com/oauth/token",
    scope: "api",
    parameters: {},
    revoke: "revoke",
  },
  sheets: {
    ...FORM,
    authorize_url: "https://accounts.google.com/o/oauth2/v2/auth",
    token_url: "https://oauth2.googleapis.com/token",
    scope:
      "openid email https://www.googleapis.com/auth/spreadsheets https://www.googleapis.com/auth/drive.file",
    // Without both there is no refresh token, or only the first time.
    parameters: { access_type: "offline", prompt: "consent" },
    revoke: "revoke",
  },
};

/** The provider of a path; `not_found` for what is none. */
export function providerNamed(name: string): IntegrationKind {
  if (Object.hasOwn(PROVIDERS, name)) return name as IntegrationKind;
  throw new AppError("not_found", "There is no such provider.", {
    fix: `The providers are ${Object.keys(PROVIDERS).join(", ")}.`,
  });
}

/** The provider as it is configured; throws `oauth_not_configured` where something is missing. */
export function providerServer(app: App, kind: IntegrationKind): OAuthServer {
  const settings = app.config.integrations[kind];
  const missing = missingKeys(settings);
  if (missing.length > 0) throw notConfigured(kind, missing);
  const { scope, format, pkce, auth, revoke, ...provider } = PROVIDERS[kind];
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
  return PROVIDERS[kind].parameters;
}

/** With one address of a server of one's own, the others must not stay those of somebody else. */
function missingKeys(settings: Config["integrations"][IntegrationKind]): string[] {
  const addresses = ["authorize_url", "token_url", "api_base"] as const;
  const own = addresses.some((key) => settings[key] !== "");
  const needed = ["client_id", "client_secret", ...(own ? addresses : [])] as const;
  return needed.filter((key) => settings[key] === "");
}

function notConfigured(kind: IntegrationKind, missing: string[]): AppError {
  const keys = missing.map((key) => `integrations.${kind}.${key}`).join(" and ");
  return new AppError(
    "oauth_not_configured",
    `This server has no OAuth client for ${KIND_INFO[kind].label}: ${keys} ${missing.length === 1 ? "is" : "are"} not set.`,
    {
      fix: `Make the connection with a token of your own: POST /connections with kind ${kind} and the token as credential. If you run this server, set ${missing.length === 1 ? "the key" : "the keys"}.`,
    },
  );
}
