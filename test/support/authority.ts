import { createHash, X509Certificate } from "node:crypto";
import { generate } from "selfsigned";

export interface Certificate {
  key: string;
  /** With the authority's behind it. */
  cert: string;
  /** TLSA data: SHA-256 of the public key (selector 1, matching type 1). */
  spki: string;
}

export interface Authority extends Certificate {
  issue(name: string): Promise<Certificate>;
}

const CURVE = { keyType: "ec", curve: "P-256" } as const;

/** A certificate authority that nobody knows. */
export async function createAuthority(name = "Test authority"): Promise<Authority> {
  const made = await generate([{ name: "commonName", value: name }], {
    ...CURVE,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  const own = { key: made.private, cert: made.cert, spki: spkiOf(made.cert) };
  return {
    ...own,
    async issue(host) {
      const leaf = await generate([{ name: "commonName", value: host }], {
        ...CURVE,
        ca: { key: own.key, cert: own.cert },
        extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: host }] }],
      });
      return { key: leaf.private, cert: `${leaf.cert}\n${own.cert}`, spki: spkiOf(leaf.cert) };
    },
  };
}

function spkiOf(pem: string): string {
  const der = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("hex");
}
