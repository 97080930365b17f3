import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SessionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { noteChange } from "./changes.ts";
import type { Caller } from "./sessions.ts";

/** The browsers that are signed in, the newest sign-in first; `current` is the one that asks. */
export async function listSessions(app: App, user: UserRow, current: SessionRow | null) {
  const rows = await livingSessions(app, app.db, user);
  return rows.map((row) => ({
    id: shownId(row),
    created: row.created,
    expires: row.expires,
    client: row.client || null,
    user_agent: row.user_agent,
    current: row.id === current?.id,
  }));
}

/** Signs one of the user's browsers out, and returns its row. */
export async function endOwnSession(app: App, caller: Caller, id: string): Promise<SessionRow> {
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "session_ended");
    const session = (await livingSessions(app, tx, caller.user)).find(
      (row) => shownId(row) === id.toLowerCase(),
    );
    if (!session) throw new AppError("not_found", "There is no such session.");
    await tx.deleteFrom("sessions").where("id", "=", session.id).execute();
    return session;
  });
}

function livingSessions(app: App, db: Db, user: UserRow): Promise<SessionRow[]> {
  return db
    .selectFrom("sessions")
    .selectAll()
    .where("user_id", "=", user.id)
    .where("expires", ">", app.now())
    .orderBy("created", "desc")
    .orderBy("id")
    .execute();
}

/** The id of a session as it is shown: a UUID (RFC 9562 §5.8) made of a part of the hash. */
function shownId({ id }: Pick<SessionRow, "id">): string {
  return `${id.slice(0, 8)}-${id.slice(8, 12)}-8${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20, 32)}`;
}
