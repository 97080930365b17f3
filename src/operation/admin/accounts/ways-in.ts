import { prepareInvitation, prepareResetLetter } from "../../../resources/accounts/account-mail.ts";
import { createVerifiedUser, findUserByEmail, normalizeEmail } from "../../../resources/accounts/accounts.ts";
import { sendCode } from "../../../resources/accounts/codes.ts";
import { clearPassword, refuseStale } from "../../../resources/accounts/passwords.ts";
import { refuseEnded } from "../../../resources/accounts/sessions.ts";
import type { App } from "../../../app.ts";
import type { Db } from "../../../db/database.ts";
import type { Plan, SessionRow, UserRow } from "../../../db/schema.ts";
import { AppError } from "../../../errors.ts";
import { viewUser } from "../users.ts";

/** An administrator who has signed in, with the browser used. */
export interface Administrator {
  user: UserRow;
  session: SessionRow;
}

const STALE = "Making an account or resetting a password needs a sign-in of the last ten minutes";

/** Creates an account for an address and mails an invitation to it; whoever reads mail there signs in with a code. */
export async function inviteUser(
  app: App,
  by: Administrator,
  input: { email: string; plan?: Plan | undefined },
) {
  refuseStale(app, by.session, STALE);
  const { email, plan } = input;
  const known = await findUserByEmail(app.db, normalizeEmail(email));
  if (known?.email_verified === 1)
    throw new AppError("conflict", `There is already an account for ${known.email}.`, {
      fix: "Send its owner a code instead.",
    });
  const user = await createVerifiedUser(app, { email, ...(plan ? { plan } : {}) }, async (made) => {
    const queue = await prepareInvitation(app, made, by.user.email);
    return async (tx) => {
      await refuseEnded(app, tx, { ...by, key_id: null });
      await queue(tx);
    };
  });
  return viewUser(app, user);
}

/** Mails a sign-in code, as if its owner had asked for it on the sign-in page. */
export async function sendCodeTo(app: App, id: string): Promise<{ retry_after: number }> {
  return app.write(async (tx) => {
    const { email } = await accountOf(tx, id);
    return sendCode(app, tx, email);
  });
}

/**
 * Removes the password of an account and signs it out everywhere. Its owner is told by mail, signs in with a code, and
 * may set a new password, which nobody else learns. Its API keys stay valid.
 */
export async function resetUserPassword(app: App, by: Administrator, id: string) {
  refuseStale(app, by.session, STALE);
  if (id === by.user.id)
    throw new AppError("conflict", "This is your own account.", {
      fix: "Change your password under Settings (`POST /auth/set-password`).",
    });
  const queue = await prepareResetLetter(app, await accountOf(app.db, id));
  const user = await app.write(async (tx) => {
    await refuseEnded(app, tx, { ...by, key_id: null });
    const cleared = await clearPassword(app, tx, await accountOf(tx, id));
    await queue(tx);
    return cleared;
  });
  return viewUser(app, user);
}

async function accountOf(db: Db, id: string): Promise<UserRow> {
  const user = await db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (!user) throw new AppError("not_found", "There is no such account.");
  return user;
}
