import { rootCertificates } from "node:tls";
import { readCaFile } from "../../tls/ca-file.ts";
import type { Bench } from "./check.ts";

/** Whose certificates a check trusts, as an option of TLS and of fetch; nothing for the built-in authorities. */
export async function trusted({ app, targets }: Bench): Promise<{ ca?: string }> {
  if (targets.ca !== undefined) return { ca: targets.ca };
  const own = await readCaFile(app.config);
  return own === undefined ? {} : { ca: [own, ...rootCertificates].join("\n") };
}
