/** The OAuth details of a provider, where the operator did not set up another one. */
export interface Consent {
  authorize_url: string;
  token_url: string;
  scope: string | null;
  /** Extra parameters for the consent page. */
  parameters: Record<string, string>;
  auth: "client_secret_basic" | "client_secret_post";
  format: "form" | "json";
  pkce: boolean;
  /**
   * The path for revoking a token (RFC 7009), relative to `token_url`; null where the provider has no such endpoint.
   */
  revoke: string | null;
}

/** The defaults of an integration; the operator may set up another server in its place. */
interface Integration {
  label: string;
  /** What it is called in sentences. */
  noun: string;
  /** The base URL of its API. */
  base_url: string;
  ping: AccountPing;
  consent: Consent;
}

/** The request that tells whose account a credential belongs to, and costs nothing. */
export interface AccountPing {
  /** The end of a base URL that is repeated in `path`. */
  without?: RegExp;
  path: string;
  headers?: Record<string, string>;
  /** Members of the answer that may name the account, in order of preference. */
  account: string[];
}

const FORM = { auth: "client_secret_post", format: "form", pkce: true } as const;

const CATALOGUE = {
  notes: {
    label: "Notion",
    noun: "notes",
    base_url: "https://api.notion.com",
    ping: {
      without: /\/v1$/,
      path: "/v1/users/me",
      headers: { "notion-version": "2022-06-28" },
      account: ["name", "id"],
    },
    consent: {
      authorize_url: "https://api.notion.com/v1/oauth/authorize",
      token_url: "https://api.notion.com/v1/oauth/token",
      scope: null,
      parameters: { owner: "user" },
      auth: "client_secret_basic",
      format: "json",
      // It refuses unknown members of the body, code_verifier included.
      pkce: false,
      revoke: "revoke",
    },
  },
  "codehost-a": {
    label: "GitHub",
    noun: "code host",
    base_url: "https://api.github.com",
    ping: {
      path: "/user",
      headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
      account: ["login"],
    },
    consent: {
      ...FORM,
      authorize_url: "https://github.com/login/oauth/authorize",
      token_url: "https://github.com/login/oauth/access_token",
      scope: "repo read:user",
      parameters: {},
      revoke: null,
    },
  },
  "codehost-b": {
    label: "GitLab",
    noun: "code host",
    base_url: "https://gitlab.com",
    ping: { without: /\/api\/v4$/, path: "/api/v4/user", account: ["username"] },
    consent: {
      ...FORM,
      authorize_url: "https://gitlab.com/oauth/authorize",
      token_url: "https://gitlab.com/oauth/token",
      scope: "api",
      parameters: {},
      revoke: "revoke",
    },
  },
  sheets: {
    label: "Google Workspace",
    noun: "sheets",
    base_url: "https://www.googleapis.com",
    ping: { without: /\/oauth2\/v3$/, path: "/oauth2/v3/userinfo", account: ["email", "sub"] },
    consent: {
      ...FORM,
      authorize_url: "https://accounts.google.com/o/oauth2/v2/auth",
      token_url: "https://oauth2.googleapis.com/token",
      scope:
        "openid email https://www.googleapis.com/auth/spreadsheets https://www.googleapis.com/auth/drive.file",
      // Without both there is no refresh token, or only at the first authorization.
      parameters: { access_type: "offline", prompt: "consent" },
      revoke: "revoke",
    },
  },
} satisfies Record<string, Integration>;

export type IntegrationKind = keyof typeof CATALOGUE;
export const INTEGRATIONS: Record<IntegrationKind, Integration> = CATALOGUE;
export const INTEGRATION_KINDS = Object.keys(CATALOGUE) as IntegrationKind[];
