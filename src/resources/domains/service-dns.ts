import type { App } from "../../app.ts";
import { canBeLookedUp } from "./nameless.ts";
import { checkServiceRecords } from "./service-check.ts";

/** The service's own domain as its operator sees it. A name that nobody else could look up is not asked for. */
export async function viewServiceDns(app: App) {
  const { domain, hostname } = app.config.smtp;
  const is_public = [domain, hostname].every(canBeLookedUp);
  const records = is_public ? await checkServiceRecords(app) : [];
  const ready = is_public && records.every(({ required, status }) => !required || status === "verified");
  return { domain, hostname, public: is_public, ready, records };
}
