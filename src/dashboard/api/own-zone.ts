import { patch } from "./client.ts";
import type { Me } from "./shapes.ts";

/**
 * Returns a new account with the time zone of its browser, because "weekdays at eight" is meant there. A zone that was
 * chosen stays. Where it cannot be changed now, the account is returned as it is, and its settings show the zone.
 */
export async function takeZone(me: Me): Promise<Me> {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (me.timezone !== "UTC" || timeZone === "UTC") return me;
  return patch<Me>("/auth/profile", { timezone: timeZone }).catch(() => me);
}
