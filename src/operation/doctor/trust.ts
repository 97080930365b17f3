import { rootCertificates } from "node:tls";
import { readCaFile } from "../../tls/ca-file.ts";
import type { Bench } from "./check.ts";

/**
 * Returns the certificate authorities that a check trusts, as an option of TLS and of fetch; empty for the built-in
 * ones.
 */
export async function trusted({ app, targets }: Bench): Promise<{ ca?: string }> {
  if (targets.ca !== undefined) return { ca: targets.ca };
  const own = await readCaFile(app.config);
  return own === undefined ? {} : { ca: [own, ...rootCertificates].join("\n") };
}
