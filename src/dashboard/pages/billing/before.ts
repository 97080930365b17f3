import type { Me } from "../../api/shapes.ts";

/** The key in the tab's storage for what the account had when it left for the page of the payment provider. */
const KEY = "billing-before";

export function holdingsOf({ plan, credits }: Me): string {
  return `${plan} ${credits.topup}`;
}

export function rememberBefore(me: Me): void {
  sessionStorage.setItem(KEY, holdingsOf(me));
}

export function before(): string | null {
  return sessionStorage.getItem(KEY);
}
