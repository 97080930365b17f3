import { AppError } from "../../errors.ts";
import { asMillionths } from "../../lib/money.ts";
import type { Caller } from "../accounts/sessions.ts";

interface Budgeted {
  monthly_budget: number | null;
}

/** The column of a budget that is set, or taken away; none where nothing is said of it. */
export function budgetColumn({ monthly_budget: given }: Partial<Budgeted>): Partial<Budgeted> {
  return given === undefined ? {} : { monthly_budget: asMillionths(given) };
}

/** Throws where an API key would raise a budget, or take it away: whoever has found a key must not spend more by it. */
export function refuseRaised({ session }: Pick<Caller, "session">, before: Budgeted, after: Budgeted): void {
  const [had, has] = [before.monthly_budget ?? Infinity, after.monthly_budget ?? Infinity];
  if (session !== null || has <= had) return;
  throw new AppError(
    "session_required",
    "An API key can lower a monthly budget, and neither raise it nor take it away.",
    { fix: "Sign in, and change it in the dashboard." },
  );
}
