declare module "mx-connect/lib/dane.js" {
  import type { X509Certificate } from "node:crypto";

  export function verifyCertAgainstTlsa(
    certificate: X509Certificate,
    records: { usage: number; selector: number; mtype: number; cert: Buffer }[],
    issuers: X509Certificate[],
  ): { valid: boolean; usage?: string; error: string | null };
}
