import { remembered } from "./prepared.ts";

/** Returns an account by id; cached, because every mail needs it. */
export const userById = remembered((db, key: { id: string }) =>
  db.selectFrom("users").selectAll().where("id", "=", key.id),
);
