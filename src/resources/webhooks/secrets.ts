import { randomBytes } from "node:crypto";
import type { App } from "../../app.ts";
import type { WebhookEndpointRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";

/** What each secret begins with; Standard Webhooks takes as the key what the rest encodes. */
export const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** What `sealed` of an endpoint holds. */
interface SealedSecrets {
  secret: string;
  /** The former secret, which signs as well until `old_secret_until`. */
  old_secret: string | null;
  /** Those before it whose day is not over, newest first: nobody knows which of them the receiver has. */
  older?: FormerSecret[];
}

interface FormerSecret {
  secret: string;
  /** Unix seconds. */
  until: number;
}

type Endpoint = Pick<WebhookEndpointRow, "id" | "sealed" | "old_secret_until">;

/** Each signs every delivery, and whoever asks again and again would make a long header of it. */
const MAX_OLDER = 4;

export function mintSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString("base64")}`;
}

export function sealSecrets(app: App, endpoint_id: string, secrets: SealedSecrets): Uint8Array {
  return app.secrets.seal(JSON.stringify(secrets), endpoint_id);
}

/** The secrets that sign a delivery now: the present one, and for a while after a change the former ones. */
export function secretsOf(app: App, endpoint: Endpoint): [string, ...string[]] {
  const secrets = openSecrets(app, endpoint);
  return [secrets.secret, ...formerOf(app, endpoint, secrets).map(({ secret }) => secret)];
}

/** Returns sealed secrets in which a new one takes the place of the present one, which signs as well until `until`. */
export function replaceSecret(
  app: App,
  endpoint: Endpoint,
  { secret, until }: { secret: string; until: number },
): { sealed: Uint8Array; old_secret_until: number | null } {
  const known = secretsIfPossible(app, endpoint);
  if (known === null)
    return { sealed: sealSecrets(app, endpoint.id, { secret, old_secret: null }), old_secret_until: null };
  const older = formerOf(app, endpoint, known).slice(0, MAX_OLDER);
  const sealed = sealSecrets(app, endpoint.id, { secret, old_secret: known.secret, older });
  return { sealed, old_secret_until: until };
}

/** The former secrets that still sign, newest first. */
function formerOf(app: App, { old_secret_until }: Endpoint, secrets: SealedSecrets): FormerSecret[] {
  const { old_secret, older = [] } = secrets;
  const last = old_secret === null ? [] : [{ secret: old_secret, until: old_secret_until ?? 0 }];
  return [...last, ...older].filter(({ until }) => until > app.calmNow());
}

/** The present secret; null when it was sealed under another master key, so that nobody can sign with it any more. */
export function secretIfPossible(
  app: App,
  endpoint: Pick<WebhookEndpointRow, "id" | "sealed">,
): string | null {
  return secretsIfPossible(app, endpoint)?.secret ?? null;
}

function secretsIfPossible(
  app: App,
  endpoint: Pick<WebhookEndpointRow, "id" | "sealed">,
): SealedSecrets | null {
  try {
    return openSecrets(app, endpoint);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

function openSecrets(app: App, { id, sealed }: Pick<WebhookEndpointRow, "id" | "sealed">): SealedSecrets {
  return JSON.parse(app.secrets.open(sealed, id)) as SealedSecrets;
}
