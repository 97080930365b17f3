import { patch } from "./client.ts";
import type { Me } from "./shapes.ts";

/**
 * Gives a new account the time zone of its browser: "weekdays at eight" means there. Whoever has chosen one keeps it, and
 * where it cannot be changed now the settings show what it is.
 */
export async function takeZone(me: Me): Promise<Me> {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (me.timezone !== "UTC" || timeZone === "UTC") return me;
  return patch<Me>("/auth/profile", { timezone: timeZone }).catch(() => me);
}
