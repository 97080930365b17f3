import { randomBytes } from "node:crypto";
import type { App } from "../../app.ts";
import type { EventRow, WebhookEndpointRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { VERSION } from "../../lib/version.ts";

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** What `sealed` of an endpoint holds. */
interface SealedSecrets {
  secret: string;
  /** The former secret, which signs as well until `old_secret_until`. */
  old_secret: string | null;
}

/** One attempt, as its receiver is to check it. */
export interface Signed extends Pick<EventRow, "id" | "type" | "body"> {
  /** Unix seconds of this attempt. */
  timestamp: number;
  /** From 1. */
  attempt: number;
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

/** All headers of one attempt; the body is sent byte for byte as it was signed. */
export function sign(secrets: string[], signed: Signed): Record<string, string> {
  const { id, timestamp, body } = signed;
  const ours = secrets.map((secret) => `v1=${hmac(secret, `${timestamp}.`, body).digest("hex")}`);
  // Standard Webhooks takes as the key what the part behind the prefix encodes; each secret signs in that way as
  // well.
  const standard = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return `v1,${hmac(key, `${id}.${timestamp}.`, body).digest("base64")}`;
  });
  return {
    ...unsignedHeaders(signed),
    "user-agent": `Mailwright/${VERSION}`,
    "service-signature": [`t=${timestamp}`, ...ours].join(","),
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standard.join(" "),
  };
}

/** What the headers of an attempt say of the event, whoever sends it and when. */
export function unsignedHeaders({ id, type, attempt }: Pick<Signed, "id" | "type" | "attempt">) {
  return {
    "content-type": "application/json",
    "service-event-id": id,
    "service-event-type": type,
    "service-delivery-attempt": String(attempt),
    "webhook-id": id,
  };
}

function openSecrets(app: App, { id, sealed }: Pick<WebhookEndpointRow, "id" | "sealed">): SealedSecrets {
  return JSON.parse(app.secrets.open(sealed, id)) as SealedSecrets;
}

/** The HMAC of `start` and `body` as one text; the body, which may be long, is not copied for it. */
function hmac(key: string | Buffer, start: string, body: string): Bun.CryptoHasher {
  return new Bun.CryptoHasher("sha256", key).update(start).update(body);
}
