/** How old a delivery may be when it comes in, as the verifiers of the guide have it. */
const TOLERANCE_SECONDS = 300;
/** `t=<unix>,v1=<hex>`, with several `v1` while two secrets sign; among other headers or alone. */
const SIGNATURE =
  /(?:^[ \t]*|service-signature["']?\s*[:=]\s*(?:["']\s*)?)t=(\d{1,12})((?:\s*,\s*v1=[0-9a-f]{64})+)(?![\w,=])/im;

/** A delivery as a program got it and somebody pasted it. */
interface Pasted {
  body: string;
  headers: string;
  secret: string;
}

/** What the server knows about the delivery, and a stranger would not. */
interface Known {
  /** This moment, in unix seconds. */
  now: number;
  /** The secret of the endpoint that the delivery is for. */
  endpoint_secret?: string | undefined;
  /** The body that was sent, byte for byte. */
  sent_body?: string | undefined;
}

export type Verdict =
  | { kind: "no_signature" }
  | { kind: "genuine" | "too_old" | "too_early"; signed_at: number }
  /** `how` says what was done to it, where that can be told. */
  | { kind: "changed_body"; how?: string }
  | { kind: "other_secret"; how?: string }
  /** An HMAC does not tell which part does not fit. */
  | { kind: "changed_or_other" };

/** Whether a pasted delivery is one of this server's and, if not, why; worked out in the browser by WebCrypto. */
export async function checkSignature(pasted: Pasted, known: Known): Promise<Verdict> {
  const [, time = "", hexes = ""] = SIGNATURE.exec(pasted.headers) ?? [];
  if (time === "") return { kind: "no_signature" };
  const made: string[] = hexes.toLowerCase().match(/[0-9a-f]{64}/g) ?? [];
  const fits = async (secret: string, body: string): Promise<boolean> =>
    made.includes(await hmacHex(secret, `${time}.${body}`));
  const { body, secret } = { ...pasted, secret: pasted.secret.trim() };
  if (await fits(secret, body)) return { kind: ageOf(Number(time), known.now), signed_at: Number(time) };
  for (const [how, original] of mendedBodies(body))
    if (await fits(secret, original)) return { kind: "changed_body", how };
  for (const [how, right] of mendedSecrets(secret, known))
    if (await fits(right, body)) return { kind: "other_secret", how };
  return judgeByLog(body, secret, known);
}

function ageOf(signed_at: number, now: number): "genuine" | "too_old" | "too_early" {
  if (now - signed_at > TOLERANCE_SECONDS) return "too_old";
  return signed_at - now > TOLERANCE_SECONDS ? "too_early" : "genuine";
}

/** The bodies from which programs could have made this one: each change that is common, undone. */
function mendedBodies(body: string): [how: string, original: string][] {
  const json = compactJson(body);
  const all: [string, string][] = [
    ["It has blanks or line breaks around it that were not sent.", body.trim()],
    ["It was read as JSON and written anew; check what came in before anything reads it.", json ?? body],
  ];
  return all.filter(([, original]) => original !== body);
}

function compactJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function mendedSecrets(secret: string, { endpoint_secret }: Known): [how: string, right: string][] {
  const right: [string, string][] = [
    ["The beginning is missing: whsec_ belongs to the secret.", `whsec_${secret}`],
  ];
  if (endpoint_secret !== undefined && endpoint_secret !== secret)
    right.push(["With the secret that this endpoint has now, it fits.", endpoint_secret]);
  return right;
}

function judgeByLog(body: string, secret: string, { endpoint_secret, sent_body }: Known): Verdict {
  if (sent_body !== undefined)
    return sent_body === body
      ? { kind: "other_secret", how: "The body is what was sent, to the last character." }
      : { kind: "changed_body", how: differenceOf(sent_body, body) };
  return endpoint_secret === secret
    ? { kind: "changed_body", how: "The secret is the one that this endpoint has now." }
    : { kind: "changed_or_other" };
}

function differenceOf(sent: string, body: string): string {
  let at = 0;
  while (at < sent.length && sent[at] === body[at]) at += 1;
  return `What was sent differs from character ${at + 1} on: “${excerpt(sent, at)}” was sent, “${excerpt(body, at)}” is here.`;
}

const EXCERPT_CHARS = 20;

function excerpt(text: string, at: number): string {
  return text.slice(at, at + EXCERPT_CHARS) || "nothing more";
}

async function hmacHex(secret: string, text: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
