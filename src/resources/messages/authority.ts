import type { MessageRow } from "../../db/schema.ts";

/** Whether its sender may give instructions. */
export function hasAuthority({ authority }: Pick<MessageRow, "authority">): boolean {
  return authority === "owner" || authority === "listed";
}
