import type { App } from "../../app.ts";
import { isPublicHost } from "../../config/forms.ts";
import { checkServiceRecords } from "./service-check.ts";

/** Ends of names that home networks give their machines, of which the public DNS knows nothing (RFC 6762, RFC 8375). */
const HOME_NAME = /\.(local|localdomain|localhost|lan|internal|home\.arpa)$/;

/** Whether others could find a name in the DNS. */
export function canBeLookedUp(name: string): boolean {
  return isPublicHost(name) && !HOME_NAME.test(name);
}

/** The service's own domain as its operator sees it. A name that nobody else could look up is not asked for. */
export async function viewServiceDns(app: App) {
  const { domain, hostname } = app.config.smtp;
  const is_public = [domain, hostname].every(canBeLookedUp);
  const records = is_public ? await checkServiceRecords(app) : [];
  const ready = is_public && records.every(({ required, status }) => !required || status === "verified");
  return { domain, hostname, public: is_public, ready, records };
}
