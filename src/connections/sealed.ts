import type { App } from "../app.ts";
import type { ConnectionRow } from "../db/schema.ts";
import { AppError, invalid } from "../errors.ts";

const HINT_CHARS = 4;
/** Below this length a hint would give too much of the secret away. */
const MIN_CHARS_FOR_HINT = 12;
const MAX_HEADERS = 20;
/** RFC 9110 §5.6.2, without the characters that nobody uses in names. */
const HEADER_NAME = /^[A-Za-z0-9_-]{1,100}$/;
/** What the connection itself decides, not its settings (RFC 9110 §7.6.1). */
const OWN_HEADERS =
  /^(host|content-length|content-type|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect)$/i;
const SENDABLE = /^[\x20-\x7e]*$/;

export interface Sealed {
  credential: string;
  headers: Record<string, string>;
}

const NOTHING_SEALED: Sealed = { credential: "", headers: {} };

export function openSealed(app: App, row: ConnectionRow): Sealed {
  return row.sealed === null ? NOTHING_SEALED : (JSON.parse(app.secrets.open(row.sealed, row.id)) as Sealed);
}

/** One that cannot be opened any more counts: it is there, and a new one mends it. */
export function hasCredential(app: App, row: ConnectionRow): boolean {
  try {
    return openSealed(app, row).credential !== "";
  } catch (error) {
    if (error instanceof AppError) return true;
    throw error;
  }
}

export function sealedColumns(
  app: App,
  row: ConnectionRow,
  input: { credential?: string; headers?: Record<string, string> },
): Partial<ConnectionRow> {
  const { credential: given, headers } = input;
  // With both given anew, what cannot be opened any more need not be.
  const sealed =
    given !== undefined && headers !== undefined ? NOTHING_SEALED : openOrNothing(app, row, given);
  const next: Sealed = { credential: given?.trim() ?? sealed.credential, headers: headers ?? sealed.headers };
  refuseUnsendable(next);
  const { credential } = next;
  return {
    sealed: app.secrets.seal(JSON.stringify(next), row.id),
    credential_hint: credential.length >= MIN_CHARS_FOR_HINT ? `…${credential.slice(-HINT_CHARS)}` : null,
    ...(given === undefined ? {} : { auth: "key" as const, expires_at: null }),
  };
}

/** A new credential mends a connection whose old one cannot be opened; its headers are lost with it. */
function openOrNothing(app: App, row: ConnectionRow, given: string | undefined): Sealed {
  try {
    return openSealed(app, row);
  } catch (error) {
    if (given === undefined) throw error;
    return NOTHING_SEALED;
  }
}

/** What could not be sent as a header later, or would change the request itself. */
function refuseUnsendable({ credential, headers }: Sealed): void {
  if (!SENDABLE.test(credential))
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
