import { urlOf } from "../lib/web-address.ts";
import type { Config } from "../config/config.ts";
import { isPublicHost } from "../config/forms.ts";

/** Returns the names that the certificate is for, the main one first. */
export function certificateNames({ server, smtp, acme }: Config): string[] {
  const policy = smtp.mta_sts === "off" ? [] : [`mta-sts.${smtp.domain}`];
  const usual = [urlOf(server.base_url)?.hostname ?? "", smtp.hostname, ...policy].filter(isPublicHost);
  const names = acme.names.length > 0 ? acme.names : usual;
  return [...new Set(names.map((name) => name.toLowerCase()))];
}
