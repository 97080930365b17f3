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
}

export function mintSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString("base64")}`;
}

export function sealSecrets(app: App, endpoint_id: string, secrets: SealedSecrets): Uint8Array {
  return app.secrets.seal(JSON.stringify(secrets), endpoint_id);
}

/** The secrets that sign a delivery now: the present one, and for a while after a change the former one. */
export function secretsOf(
  app: App,
  endpoint: Pick<WebhookEndpointRow, "id" | "sealed" | "old_secret_until">,
): [string, ...string[]] {
  const { secret, old_secret } = openSecrets(app, endpoint);
  const both = old_secret !== null && (endpoint.old_secret_until ?? 0) > app.calmNow();
  return both ? [secret, old_secret] : [secret];
}

/** The present secret; null when it was sealed under another master key, so that nobody can sign with it any more. */
export function secretIfPossible(
  app: App,
  endpoint: Pick<WebhookEndpointRow, "id" | "sealed">,
): string | null {
  try {
    return openSecrets(app, endpoint).secret;
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

function openSecrets(app: App, { id, sealed }: Pick<WebhookEndpointRow, "id" | "sealed">): SealedSecrets {
  return JSON.parse(app.secrets.open(sealed, id)) as SealedSecrets;
}
