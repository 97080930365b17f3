import type { MessageRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** The `+tag` of its recipient, the `#tags` of its instruction and those of rules, each once. */
export function tagsOf({ command, tags }: Pick<MessageRow, "command" | "tags">): string[] {
  const given = storedJson<{ tags?: string[] }>(command ?? "{}", {});
  return [...new Set([...storedJson<string[]>(tags, []), ...(given.tags ?? [])])];
}
