import type { ConnectionRow } from "../../db/schema.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { sha256 } from "../../lib/sha256.ts";
import type { Tool } from "../../trust/guard/tool.ts";

/**
 * Names all that a consent is for: the call with its arguments, where the tool is, and what it says of itself. A tool that has changed
 * since, or a connection that leads elsewhere, has another hash.
 */
export function hashOf(
  { id, base_url }: Pick<ConnectionRow, "id" | "base_url">,
  { target, name, parameters, read_only, destructive }: Tool,
  args: Record<string, unknown>,
): string {
  return sha256(canonicalJson([id, base_url, target, name, parameters, read_only, destructive, args]), "hex");
}
