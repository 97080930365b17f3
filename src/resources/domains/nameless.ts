import { isPublicHost } from "../../config/forms.ts";
import type { Config } from "../../config/config.ts";
import type { WantedRecord } from "./service-records.ts";

/** Names that networks at home give their machines, of which the public DNS knows nothing (RFC 6762, RFC 8375). */
const HOME_NAME = /\.(local|localdomain|localhost|lan|internal|home\.arpa)$/;

/** Whether others could find a name in the DNS. */
export function canBeLookedUp(name: string): boolean {
  return isPublicHost(name) && !HOME_NAME.test(name);
}

/** What stands in the way of every custom domain while this server has no name that others could look up. */
export function withoutName(hostname: string): string {
  return `This server has no name yet that others could look up: "${hostname}" would lead nowhere. Whoever runs it has to set smtp.hostname to its public name; publish nothing before that.`;
}

type Names = Pick<Config["smtp"], "hostname" | "domain">;

/** Leaves out the records of names that nobody outside can look up: to publish them is not possible. */
export function publishable<T extends Pick<WantedRecord, "name">>(smtp: Names, records: T[]): T[] {
  return records.filter(({ name }) => !isNameless(name, smtp));
}

/** Whether a record leads to a name that nobody outside can look up. */
export function leadsNowhere(smtp: Names, { value }: Pick<WantedRecord, "value">): boolean {
  return value?.split(/[\s:]/).some((part) => isNameless(part, smtp)) === true;
}

/** The record of which the value is not known before this machine has a public name. */
export function unnamed(smtp: Names, record: WantedRecord): WantedRecord {
  const note = `once smtp.hostname is the public name of this machine: nobody outside can look up "${smtp.hostname}"`;
  return { ...record, value: null, note };
}

function isNameless(part: string, { hostname, domain }: Names): boolean {
  const nameless = [hostname, domain].filter((name) => !canBeLookedUp(name));
  return nameless.some((name) => part === name || part.endsWith(`.${name}`));
}
