import { addApproval, type NewApproval } from "../../src/resources/approvals/approvals.ts";
import type { TestApp } from "./app.ts";

/** A hash as a page sends it back. */
export const HASH = "0".repeat(64);

/** Stores a request for consent that a run would have left, and returns its id. */
export async function storeApproval(
  { app }: TestApp,
  about: Pick<NewApproval, "user_id" | "inbox_id" | "message_id"> & Partial<NewApproval>,
): Promise<string> {
  const id = app.newId();
  await app.write((tx) =>
    addApproval(app, tx, {
      id,
      connection_id: id,
      target: "mcp:calendar",
      tool: "create_event",
      arguments: '{"title":"Lunch"}',
      shown: null,
      changes: null,
      hash: HASH,
      cause: "boundary",
      tainted: 1,
      letter_id: null,
      ...about,
    }),
  );
  return id;
}
