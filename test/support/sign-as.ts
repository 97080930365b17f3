import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import type { DnsZone } from "./dns-server.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const KEY = `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;

export interface Signing {
  /** The names of h=, those of absent fields included; by default `OVERSIGNED`. */
  fields?: string[];
  c?: "relaxed/relaxed" | "relaxed/simple" | "simple/simple" | "simple/relaxed";
  /** More tags, each with its semicolon: `l=5;`. */
  more?: string;
}

/** What a careful domain signs, whether it is there or not. */
export const OVERSIGNED =
  "from date subject to cc reply-to message-id in-reply-to references mime-version content-type content-transfer-encoding".split(
    " ",
  );

/** The record of the key that `signAs` signs with. */
export function keyZone(domain: string): DnsZone {
  return { [`as._domainkey.${domain}`]: { TXT: [KEY] } };
}

/**
 * The mail with a signature in front that names what it is told to, present or not (RFC 6376 §5.4.2), which the
 * signer of our own library does not do. Written by itself, so that it can contradict what it tests.
 */
export function signAs(
  domain: string,
  raw: Buffer,
  { fields = OVERSIGNED, c, more = "" }: Signing = {},
): Buffer {
  const canon = c ?? "relaxed/relaxed";
  const [forHeader, forBody] = canon.split("/");
  const text = raw.toString("latin1");
  const end = text.indexOf("\r\n\r\n");
  const left = text
    .slice(0, end)
    .split(/\r\n(?![ \t])/)
    .map((field) => ({ name: field.slice(0, field.indexOf(":")).trim().toLowerCase(), field }));
  const chosen = fields.flatMap((name) => {
    const at = left.findLastIndex((one) => one.name === name);
    return at < 0 ? [] : left.splice(at, 1).map(({ field }) => field);
  });
  const bh = createHash("sha256")
    .update(bodyAs(text.slice(end + 4), forBody), "latin1")
    .digest("base64");
  const unsigned = `DKIM-Signature: v=1; a=rsa-sha256; c=${canon}; d=${domain}; s=as; ${more} h=${fields.join(":")}; bh=${bh}; b=`;
  const head = [...chosen, unsigned].map((field) => headerAs(field, forHeader)).join("\r\n");
  const b = createSign("sha256").update(head, "latin1").sign(privateKey, "base64");
  return Buffer.concat([Buffer.from(`${unsigned}${b}\r\n`), raw]);
}

function headerAs(field: string, canon = "relaxed"): string {
  if (canon === "simple") return field;
  const colon = field.indexOf(":");
  const value = field
    .slice(colon + 1)
    .replaceAll("\r\n", "")
    .replaceAll(/[ \t]+/g, " ");
  return `${field.slice(0, colon).trim().toLowerCase()}:${value.replaceAll(/^ | $/g, "")}`;
}

function bodyAs(body: string, canon = "relaxed"): string {
  const lines = body.split("\r\n");
  const kept =
    canon === "simple" ? lines : lines.map((line) => line.replaceAll(/[ \t]+/g, " ").replace(/ $/, ""));
  while (kept.at(-1) === "") kept.pop();
  if (kept.length === 0) return canon === "simple" ? "\r\n" : "";
  return `${kept.join("\r\n")}\r\n`;
}
