import { remembered } from "./prepared.ts";

/** An account, for the paths that every mail takes. */
export const userById = remembered((db, key: { id: string }) =>
  db.selectFrom("users").selectAll().where("id", "=", key.id),
);
