import type { Story } from "../../api/shapes.ts";

/** Whether a model was, or was to be, asked about it. The server says where something else stands in the way. */
export function mayReplay({ status, model, approval_id }: Story): boolean {
  return approval_id === null && ((status === "done" && model !== null) || status === "failed");
}
