import type { App } from "../../app.ts";
import { prepared } from "../../db/prepared.ts";

const NUMBERS = 1_000_000;
const DIGITS = 6;

/**
 * The number of a request, of six digits, which only its letter shows and which follows from its id: who says it has read that letter.
 */
export function numberOf(app: App, approval_id: string): string {
  const from = app.secrets.hmac("consent", approval_id).readUInt32BE() % NUMBERS;
  return String(from).padStart(DIGITS, "0");
}

/** The numbers of all requests of an account that are not decided: no tool may write one of them. */
export async function waitingNumbers(app: App, user_id: string): Promise<string[]> {
  return (await undecided(app.db, { user_id })).map(({ id }) => numberOf(app, id));
}

const undecided = prepared((db, key: { user_id: string }) =>
  db.selectFrom("approvals").select("id").where("user_id", "=", key.user_id).where("state", "=", "pending"),
);
