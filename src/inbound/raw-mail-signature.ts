import { timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { App } from "../app.ts";
import { AppError, invalid } from "../errors.ts";

/** Characters of the longest address (RFC 5321 §4.5.3.1.3 limits a path). */
const MAX_ADDRESS_CHARS = 320;
const MAX_NAME_CHARS = 255;
const MAX_RECIPIENTS = 100;
const MAX_ENVELOPE_CHARS = 40_000;
/**
 * Seconds by which the clock of the caller may differ from ours; within this time a captured request could be sent
 * again.
 */
const TOLERANCE_SECONDS = 300;

/** The envelope of a mail, as SMTP has it. */
export interface Envelope {
  /** "" is the null reverse-path. */
  mail_from: string;
  rcpt_to: string[];
  /** The client that brought the mail; "" where it is not known. */
  remote_ip: string;
  helo: string;
}

/** The header fields of a request that hands in a mail. */
export interface MailHeaderFields {
  envelope: string;
  signature: string;
}

/** Returns the configured secret. Throws `inbound_not_configured` if there is none. */
export function inboundSecret({ config }: App): string {
  const { secret } = config.inbound;
  if (secret !== "") return secret;
  throw new AppError(
    "inbound_not_configured",
    "This server takes no mail over HTTP: inbound.secret is not set.",
    {
      fix: "If you run this server: set inbound.secret to the output of `openssl rand -hex 32`, and start it again.",
    },
  );
}

/**
 * Throws `invalid_signature` unless `v1` is the HMAC-SHA256 of `t`, the envelope as it was sent and the mail, with full
 * stops between them.
 */
export function refuseUnsigned(app: App, raw: Uint8Array, { envelope, signature }: MailHeaderFields): void {
  const secret = inboundSecret(app);
  const time = /(?:^|,)\s*t=(\d{1,12})\s*(?=,|$)/.exec(signature)?.[1];
  if (time === undefined) throw unsigned("It has no time: Service-Signature must be t=…,v1=….");
  const apart = Math.floor(app.wallMs() / 1_000) - Number(time);
  if (Math.abs(apart) > TOLERANCE_SECONDS)
    throw unsigned(
      `It was signed ${Math.abs(apart)} seconds ${apart > 0 ? "ago" : "in the future"}; see to the clocks.`,
    );
  const wanted = new Bun.CryptoHasher("sha256", secret).update(`${time}.${envelope}.`).update(raw).digest();
  const given = [...signature.matchAll(/(?:^|,)\s*v1=([0-9a-f]{64})\s*(?=,|$)/gi)];
  const fits = given.map(([, hex = ""]) => timingSafeEqual(Buffer.from(hex, "hex"), wanted));
  if (!fits.includes(true)) throw unsigned("It does not fit the mail, the envelope and inbound.secret.");
}

function unsigned(why: string): AppError {
  return new AppError("invalid_signature", `The signature of this mail is not good. ${why}`, {
    fix: "Sign `<t>.<Service-Envelope>.<mail>` with HMAC-SHA256 and the secret, byte for byte as they are sent.",
  });
}

/** Reads `mail_from=…&rcpt_to=…&rcpt_to=…&remote_ip=…&helo=…`, which is encoded like a form. */
export function readEnvelope(text: string): Envelope {
  if (text.length > MAX_ENVELOPE_CHARS) throw fault("", "too_long", "is too long");
  const form = new URLSearchParams(text);
  const rcpt_to = [...new Set(form.getAll("rcpt_to").map((address) => addressIn("rcpt_to", address)))];
  if (rcpt_to.length === 0 || rcpt_to.includes(""))
    throw fault(".rcpt_to", "missing", "must name a recipient: rcpt_to=desk%40example.org");
  if (rcpt_to.length > MAX_RECIPIENTS)
    throw fault(".rcpt_to", "too_long", `may name ${MAX_RECIPIENTS} recipients at most`);
  const mail_from = form.get("mail_from");
  if (mail_from === null)
    throw fault(".mail_from", "missing", 'must name the sender; "mail_from=" is the empty one of a bounce');
  const remote_ip = form.get("remote_ip") ?? "";
  if (remote_ip !== "" && isIP(remote_ip) === 0)
    throw fault(".remote_ip", "invalid", "must be an IP address, or be left out");
  const helo = form.get("helo") ?? "";
  if (helo.length > MAX_NAME_CHARS || /[\s\p{Cc}]/u.test(helo)) throw fault(".helo", "invalid", "is no name");
  return { mail_from: addressIn("mail_from", mail_from), rcpt_to, remote_ip, helo };
}

function addressIn(name: string, given: string): string {
  const address = given.replace(/^<(.*)>$/, "$1");
  if (address.includes(" "))
    throw fault(`.${name}`, "invalid", 'has a blank in it: a "+" must be sent as "%2B"');
  if (address.length > MAX_ADDRESS_CHARS || /[\p{Cc}<>]/u.test(address))
    throw fault(`.${name}`, "invalid", "is no mail address");
  return address;
}

function fault(where: string, code: string, words: string): AppError {
  return invalid(`header.service-envelope${where}`, code, `Service-Envelope${where} ${words}.`);
}
