import { X509Certificate } from "node:crypto";
import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { sha256 } from "../../lib/sha256.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/**
 * How long senders may keep the policy. While it is tried out, a mistake is over within a day; else RFC 8461 §3.2
 * speaks of weeks.
 */
const MAX_AGE_SECONDS = { testing: DAY_SECONDS, enforce: 604_800 };
const ID_CHARS = 20;

/** The policy file of the service's own domain (RFC 8461 §3.2); null when it has none. */
export function mtaStsPolicy({ smtp }: Config, mode: Config["smtp"]["mta_sts"]): string | null {
  if (mode === "off") return null;
  const lines = [
    "version: STSv1",
    `mode: ${mode}`,
    `mx: ${smtp.hostname}`,
    `max_age: ${MAX_AGE_SECONDS[mode]}`,
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/**
 * The policy that is served: "testing" in place of "enforce" while senders would not trust the certificate, since
 * that would keep all mail away.
 */
export async function policyShown({ config, certificates, nowMs }: App): Promise<string | null> {
  const { mta_sts, hostname } = config.smtp;
  if (mta_sts !== "enforce") return mtaStsPolicy(config, mta_sts);
  const leaf = new X509Certificate((await certificates.current()).cert);
  const vouched_for = leaf.issuer !== leaf.subject && leaf.checkHost(hostname) !== undefined;
  const holds = vouched_for && Date.parse(leaf.validTo) > nowMs();
  return mtaStsPolicy(config, holds ? "enforce" : "testing");
}

export function mtaStsHost({ smtp }: Config): string {
  return `mta-sts.${smtp.domain}`;
}

/** The TXT record that announces the policy; its id changes with the configured policy (RFC 8461 §3.1). */
export function mtaStsRecord(config: Config): string {
  const policy = mtaStsPolicy(config, config.smtp.mta_sts) ?? "";
  const id = sha256(policy, "hex").slice(0, ID_CHARS);
  return `v=STSv1; id=${id}`;
}
