import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import { grantedColumns, openSealed } from "../connections/sealed.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";

/** What was found out about access that has ended. */
interface Ended {
  credential: string;
  refresh_token: string | null;
  /** Why, in a sentence. */
  why: string;
}

/** Marks a connection whose access has ended, and tells its owner; once, until it is connected again. */
export async function tellNeedsAuth(app: App, row: ConnectionRow, ended: Ended): Promise<void> {
  // The letter is signed before the transaction, for which that is too slow.
  const queue = await letterTo(app, row);
  await app.write(async (tx) => {
    const now = await tx.selectFrom("connections").selectAll().where("id", "=", row.id).executeTakeFirst();
    if (!now) return;
    const { credential, oauth } = openSealed(app, now);
    const same = credential === ended.credential && oauth?.refresh_token === ended.refresh_token;
    if (oauth === undefined || oauth.ended || !same) return;
    const columns = grantedColumns(app, now, {
      credential,
      expires_at: now.expires_at,
      oauth: { ...oauth, refresh_token: null, ended: true },
    });
    const outcome = { status: "needs_auth" as const, last_error: `${ended.why} Connect it again.` };
    await tx
      .updateTable("connections")
      .set({ ...columns, ...outcome })
      .where("id", "=", now.id)
      .execute();
    await queue?.(tx);
  });
}

async function letterTo(app: App, row: ConnectionRow): Promise<QueueLetter | undefined> {
  const owner = await app.db
    .selectFrom("users")
    .select(["id", "email"])
    .where("id", "=", row.user_id)
    .executeTakeFirst();
  return (
    owner &&
    prepareLetter(app, {
      user_id: owner.id,
      to: owner.email,
      subject: "Please connect your account again",
      markdown: wordsAbout(app, row),
    })
  );
}

function wordsAbout(app: App, { label }: ConnectionRow): string {
  return `The connection ${asCode(label)} has lost its access: the service at the other end does not accept it any more. Until you connect it again, your inboxes do without it.

Open ${app.base_url}/app/connections and connect it again.

This happens when the access was withdrawn there, or was not used for a long time. You get this mail once.`;
}
