import type { ConnectionRow } from "../../db/schema.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { sha256 } from "../../lib/sha256.ts";
import type { Tool } from "../../trust/guard/tool.ts";

/**
 * Names all that a consent is for: the call with its arguments, where the tool is and in whose account, and what it says of itself. A
 * tool that has changed since, or a connection that leads elsewhere or has other secrets, has another hash. Secrets that nobody has
 * changed since that is noted have no id, so that requests from before keep their hash.
 */
export function hashOf(
  { id, base_url, secrets_id }: Pick<ConnectionRow, "id" | "base_url" | "secrets_id">,
  { target, name, parameters, read_only, destructive }: Tool,
  args: Record<string, unknown>,
): string {
  const about = [id, base_url, target, name, parameters, read_only, destructive, args];
  return sha256(canonicalJson(secrets_id === null ? about : [...about, secrets_id]), "hex");
}
