import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { messageOf } from "../errors.ts";
import { urlOf } from "../lib/web-address.ts";

/** A certificate chain and its key, both PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

/** Returns why this pair is unusable, as a sentence; undefined when it is usable. */
export function pairFault({ cert, key }: Certificate): string | undefined {
  try {
    const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (!fits) return "The private key does not belong to the certificate.";
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return `It cannot be read: ${messageOf(error)}.`;
  }
}

/** Returns why browsers refuse a certificate at `base_url`; undefined where they do not, or where a proxy has another. */
export function nameFault(
  cert: string,
  { base_url, trusted_proxies }: { base_url: string; trusted_proxies: string[] },
): string | undefined {
  const url = urlOf(base_url);
  if (url?.protocol !== "https:" || trusted_proxies.length > 0) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const leaf = new X509Certificate(cert);
  if ((isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined) return undefined;
  return `is for ${leaf.subjectAltName?.replaceAll("DNS:", "") ?? leaf.subject}, and not for ${host}, the host of server.base_url: browsers refuse it there`;
}

/** Facts of the first certificate of a chain; times are unix seconds. */
export interface Facts {
  names: string[];
  from: number;
  until: number;
}

export function factsOf(cert: string): Facts {
  const leaf = new X509Certificate(cert);
  return {
    names: [...(leaf.subjectAltName ?? "").matchAll(/DNS:([^,\s]+)/g)].map(([, name = ""]) => name),
    from: Date.parse(leaf.validFrom) / 1_000,
    until: Date.parse(leaf.validTo) / 1_000,
  };
}
