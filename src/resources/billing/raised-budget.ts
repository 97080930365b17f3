import { AppError } from "../../errors.ts";
import type { Caller } from "../accounts/sessions.ts";

interface Budgeted {
  monthly_budget: number | null;
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
