import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";

const HINT_CHARS = 4;
/** The shortest secret of which a hint is shown: it would give too much of a shorter one away. */
const MIN_CHARS_FOR_HINT = 12;
const MAX_HEADERS = 20;
/** Names of headers: RFC 9110 §5.6.2, without the characters that nobody uses in names. */
const HEADER_NAME = /^[A-Za-z0-9_-]{1,100}$/;
/** Headers that HTTP itself decides, and that settings must not set (RFC 9110 §7.6.1). */
const OWN_HEADERS =
  /^(host|content-length|content-type|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect)$/i;
const SENDABLE = /^[\x20-\x7e]*$/;

export interface Sealed {
  credential: string;
  headers: Record<string, string>;
  /** The secret of an OAuth client that was registered by hand; its id is `config.client_id`. */
  client_secret?: string;
  /** The grant of a credential that came by OAuth. */
  oauth?: OAuthGrant;
}

export interface OAuthGrant {
  refresh_token: string | null;
  /** The account at the provider; empty for an MCP server. */
  account: string;
  /** The authorization server; null for the one that the operator configured for this kind. */
  server: OAuthServer | null;
  /** Set once the grant has ended and the owner was told. */
  ended: boolean;
}

/** An authorization server, and this server's client there. */
export interface OAuthServer {
  /** The issuer by which it names itself (RFC 8414); null where it does not. */
  issuer: string | null;
  /** Whether its answers name the issuer (RFC 9207). */
  names_itself: boolean;
  authorization_endpoint: string;
  token_endpoint: string;
  revocation_endpoint: string | null;
  client: OAuthClient;
  /** The resource that tokens are for (RFC 8707). */
  resource: string | null;
  scope: string | null;
  /** The form of requests to its token endpoint; RFC 6749 knows forms only. */
  format: "form" | "json";
  /** Whether it takes a code challenge (RFC 7636). */
  pkce: boolean;
}

export interface OAuthClient {
  id: string;
  secret: string | null;
  auth: "client_secret_basic" | "client_secret_post" | "none";
  /**
   * The redirect URI with which this server has registered itself (RFC 7591); null for a client that was registered
   * by hand, or not at all.
   */
  registered_for: string | null;
}

/**
 * New tokens that are in memory alone because the disk takes no writes: the refresh token on the disk may be used up.
 */
export interface UnwrittenGrant {
  /** The refresh tokens that these replace. */
  instead_of: (string | null)[];
  refresh_token: string | null;
  credential: string;
  expires_at: number | null;
}

const NOTHING_SEALED: Sealed = { credential: "", headers: {} };

/** Opens the secrets of a connection as they are now, whether that is written or not. */
export function openSealed(app: App, row: ConnectionRow): Sealed {
  return openWithEnd(app, row).sealed;
}

/** As `openSealed`, with the time at which the credential ends, in unix seconds; null where nobody says. */
export function openWithEnd(app: App, row: ConnectionRow): { sealed: Sealed; expires_at: number | null } {
  const stored = openStored(app, row);
  const { oauth } = stored;
  const newer = unwrittenGrant(app, row, stored);
  if (newer === undefined || oauth === undefined) return { sealed: stored, expires_at: row.expires_at };
  const { credential, refresh_token, expires_at } = newer;
  return { sealed: { ...stored, credential, oauth: { ...oauth, refresh_token } }, expires_at };
}

/** Opens the secrets that the row has. */
export function openStored(app: App, row: ConnectionRow): Sealed {
  return row.sealed === null ? NOTHING_SEALED : (JSON.parse(app.secrets.open(row.sealed, row.id)) as Sealed);
}

/** The tokens that are newer than the row; undefined once they are written, or the connection was connected anew. */
export function unwrittenGrant(app: App, row: ConnectionRow, stored: Sealed): UnwrittenGrant | undefined {
  const { oauth } = stored;
  const newer = app.unwritten.get(row.id);
  return oauth && !oauth.ended && newer?.instead_of.includes(oauth.refresh_token) ? newer : undefined;
}

/** As `openSealed`; undefined when it was sealed under another master key, and so is lost. */
export function openIfPossible(app: App, row: ConnectionRow): Sealed | undefined {
  try {
    return openSealed(app, row);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/**
 * Whether a connection has a credential. One that cannot be opened any more counts: it is there, and a new one
 * replaces it.
 */
export function hasCredential(app: App, row: ConnectionRow): boolean {
  return openIfPossible(app, row)?.credential !== "";
}

export interface SecretInput {
  credential?: string;
  headers?: Record<string, string>;
  /** The secret of an OAuth client; null takes it away. */
  client_secret?: string | null;
}

/** A key as it was pasted, which examples show as it is sent (RFC 6750). */
function keyIn(pasted: string): string {
  return pasted.trim().replace(/^Bearer +/i, "");
}

export function sealedColumns(app: App, row: ConnectionRow, input: SecretInput): Partial<ConnectionRow> {
  const { credential: given, headers, client_secret } = input;
  // A new credential makes a connection usable whose old one cannot be opened; its headers are lost with that one.
  const sealed = given === undefined ? openSealed(app, row) : (openIfPossible(app, row) ?? NOTHING_SEALED);
  const secret = client_secret === undefined ? sealed.client_secret : client_secret;
  const next: Sealed = {
    credential: given === undefined ? sealed.credential : keyIn(given),
    headers: headers ?? sealed.headers,
    ...(typeof secret === "string" ? { client_secret: secret } : {}),
    // A credential that is typed in takes the place of one that came by OAuth.
    ...(sealed.oauth === undefined || given !== undefined ? {} : { oauth: sealed.oauth }),
  };
  refuseUnsendable(next);
  return {
    ...columnsOf(app, row, next),
    secrets_id: secretsId(app, row, next),
    ...(given === undefined ? {} : { auth: "key" as const, expires_at: null }),
  };
}

/** The id that secrets have once they are these: another one, unless they are the same. */
function secretsId(app: App, row: ConnectionRow, next: Sealed): string | null {
  const before = openIfPossible(app, row);
  const is_same = before !== undefined && canonicalJson(before) === canonicalJson(next);
  return is_same ? row.secrets_id : app.newId();
}

/** The columns that a grant changes; what is allowed to be done with another grant, or account, is not allowed with it. */
export function newlyGrantedColumns(
  app: App,
  row: ConnectionRow,
  granted: Parameters<typeof grantedColumns>[2],
) {
  return { ...grantedColumns(app, row, granted), secrets_id: app.newId() };
}

/** The columns that a refresh of a grant changes, or its end; the rest of what is sealed stays. */
export function grantedColumns(
  app: App,
  row: ConnectionRow,
  granted: { credential: string; expires_at: number | null; oauth: OAuthGrant },
) {
  const { credential, expires_at, oauth } = granted;
  const next: Sealed = { ...(openIfPossible(app, row) ?? NOTHING_SEALED), credential, oauth };
  return { ...columnsOf(app, row, next), auth: "oauth" as const, expires_at };
}

/** Whether a credential can be sent in a header. */
export function isSendable(credential: string): boolean {
  return SENDABLE.test(credential);
}

function columnsOf(app: App, row: ConnectionRow, sealed: Sealed) {
  const { credential } = sealed;
  return {
    sealed: app.secrets.seal(JSON.stringify(sealed), row.id),
    credential_hint: credential.length >= MIN_CHARS_FOR_HINT ? `…${credential.slice(-HINT_CHARS)}` : null,
  };
}

/** Throws for a credential or headers that could not be sent, or would change the request itself. */
function refuseUnsendable({ credential, headers }: Sealed): void {
  if (!isSendable(credential))
    throw invalid(
      "body.credential",
      "invalid_credential",
      "The credential holds a line break or a character outside of ASCII; paste it again.",
    );
  const entries = Object.entries(headers);
  const isBad = ([name, value]: [string, string]): boolean =>
    !HEADER_NAME.test(name) || OWN_HEADERS.test(name) || !SENDABLE.test(value);
  if (entries.length > MAX_HEADERS || entries.some(isBad))
    throw invalid(
      "body.headers",
      "invalid_headers",
      `headers must be at most ${MAX_HEADERS} names of letters, digits and hyphens with values of one ASCII line, none of which the connection sets itself (such as Host or Content-Length).`,
    );
}
