import { domainToASCII } from "node:url";
import type { App } from "../app.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { findRecipient, type Reception, type Recipient } from "../messages/receive.ts";

type Refusal = Pick<Reception, "code" | "enhanced" | "text">;

/** Who an address names here, or what its sender hears instead. */
export async function lookUp(app: App, address: string): Promise<Recipient | Refusal> {
  const recipient = await findRecipient(app, address);
  if (recipient) return recipient;
  app.metrics.count("mailwright_mails_refused_total", { reason: "unknown_recipient" });
  return (await isOwnDomain(app, splitAddress(address).domain)) ? UNKNOWN : NOT_OURS;
}

const UNKNOWN: Refusal = { code: 550, enhanced: "5.1.1", text: "There is no such address here" };
const NOT_OURS: Refusal = {
  code: 550,
  enhanced: "5.7.1",
  text: "This server takes mail for its own addresses only",
};

/** Everywhere else domains have A-labels; the library writes `xn--…` as what it stands for (RFC 6531 §3.3 allows both). */
export function withAsciiDomain(address: string): string {
  const at = address.lastIndexOf("@") + 1;
  return /[^\0-\x7f]/.test(address.slice(at))
    ? address.slice(0, at) + domainToASCII(address.slice(at))
    : address;
}
