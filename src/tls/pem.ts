import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf } from "../errors.ts";

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
