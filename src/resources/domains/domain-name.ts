import { asciiHost } from "../../lib/web-address.ts";
import type { Config } from "../../config/config.ts";
import { invalid } from "../../errors.ts";
import { registrableDomain } from "../../net/domain-owner.ts";

/**
 * The longest domain with which the name of every record below it fits into the 253 octets of a name (RFC 1035
 * §2.3.4).
 */
const MAX_DOMAIN_OCTETS = 239;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Letters, digits and hyphens of any script, and the full stops that IDNA knows. */
const WRITTEN = /^[\p{L}\p{M}\p{N}\-.。．｡]+$/u;

/** The domain in A-labels and lower case. Throws `validation_error` for one that may not be added. */
export function domainName(config: Config, input: string): string {
  const domain = asciiOf(input);
  if (domain === undefined)
    throw invalid(
      "body.domain",
      "invalid_domain",
      `${quoted(input)} is not a domain such as ai.example.com.`,
    );
  if (registrableDomain(domain) === null)
    throw invalid(
      "body.domain",
      "public_suffix",
      `Anybody can register names under ${domain}; add a domain of your own below it.`,
    );
  const { domain: service, former_domains, hostname } = config.smtp;
  if ([service, ...former_domains, hostname].some((ours) => domain === ours || domain.endsWith(`.${ours}`)))
    throw invalid("body.domain", "own_domain", `${domain} belongs to this server already.`);
  return domain;
}

function asciiOf(input: string): string | undefined {
  const written = input.trim();
  if (!WRITTEN.test(written)) return undefined;
  const ascii = asciiHost(written).toLowerCase().replace(/\.$/, "");
  const labels = ascii.split(".");
  // A last label of digits alone is the end of an IP address.
  const valid =
    labels.length >= 2 &&
    ascii.length <= MAX_DOMAIN_OCTETS &&
    labels.every((label) => LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? "");
  return valid ? ascii : undefined;
}

function quoted(input: string): string {
  return `"${input.slice(0, 100)}"`;
}
