import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { jsonMember } from "../../db/json.ts";
import { sweepAskers } from "./code-askers.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const KEPT_SECONDS = DAY_SECONDS;
/** The most that one sweep deletes, so that many of them hold nobody up. */
const MAX_SWEPT = 500;

/**
 * Deletes codes and chosen passwords that have lapsed, and accounts whose address was never proven: such an account
 * holds nothing, and the next code makes it anew.
 */
export async function sweepUnproven(app: App, tx: Db): Promise<void> {
  const before = app.calmNow() - KEPT_SECONDS;
  await sweepAskers(tx, before);
  const codes = tx.selectFrom("login_codes").select("user_id").where("created", "<=", before);
  const chosen = tx.selectFrom("pending_passwords").select("user_id").where("created", "<=", before);
  const stale = await codes.union(chosen).limit(MAX_SWEPT).execute();
  const ids = stale.map(({ user_id }) => user_id);
  if (ids.length === 0) return;
  for (const table of ["login_codes", "pending_passwords"] as const)
    await tx.deleteFrom(table).where("user_id", "in", ids).where("created", "<=", before).execute();
  await tx
    .deleteFrom("users")
    .where("id", "in", ids)
    .where("email_verified", "=", 0)
    .where("id", "not in", tx.selectFrom("login_codes").select("user_id"))
    .where("id", "not in", tx.selectFrom("pending_passwords").select("user_id"))
    .where("email", "not in", (eb) =>
      eb
        .selectFrom("jobs")
        .select(jsonMember("payload", "email").as("email"))
        .where("kind", "=", "mail_code")
        .where(jsonMember("payload", "email"), "is not", null),
    )
    .execute();
}
