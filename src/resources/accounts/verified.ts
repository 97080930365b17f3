import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";

/** Throws `email_not_verified` for an account whose mail address nobody has proven yet. */
export function refuseUnverified(user: UserRow): void {
  if (user.email_verified === 1) return;
  throw new AppError("email_not_verified", "Verify the mail address of this account first.", {
    fix: "Sign in once with a login code.",
  });
}
