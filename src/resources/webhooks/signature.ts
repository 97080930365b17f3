import type { EventRow } from "../../db/schema.ts";
import { VERSION } from "../../lib/version.ts";
import { PREFIX } from "./secrets.ts";

/** One attempt, as its receiver is to check it. */
export interface Signed extends Pick<EventRow, "id" | "type" | "body"> {
  /** Unix seconds of this attempt. */
  timestamp: number;
  /** From 1. */
  attempt: number;
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

/** The HMAC of `start` and `body` as one text; the body, which may be long, is not copied for it. */
function hmac(key: string | Buffer, start: string, body: string): Bun.CryptoHasher {
  return new Bun.CryptoHasher("sha256", key).update(start).update(body);
}
