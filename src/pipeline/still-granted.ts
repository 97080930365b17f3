import { userById } from "../db/users.ts";
import type { Tool } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import { isAskedFirst } from "../resources/connections/ask-first.ts";
import { targetsOf } from "../resources/connections/targets.ts";
import type { Db } from "../db/database.ts";
import { scopeOf } from "../db/inbox-columns.ts";
import { inboxById } from "../resources/inboxes/inboxes.ts";
import { authorityNow } from "../inbound/judge-sender.ts";
import type { Run } from "./close.ts";

/** Whether a run may still use a tool that changes something: the owner may have withdrawn it since the run began. */
export async function isStillGranted(
  app: App,
  tx: Db,
  { message, settings, command }: Pick<Run, "message" | "settings" | "command">,
  { tool, tainted }: { tool: Pick<Tool, "target" | "name" | "read_only">; tainted: boolean },
): Promise<boolean> {
  const [inbox] = await inboxById(tx, { id: message.inbox_id ?? "" });
  const [user] = await userById(tx, { id: message.user_id });
  if (!inbox || !user || user.deleted_at !== null) return false;
  const powers = app.guard.powersOf({
    ...settings,
    scope: scopeOf(inbox),
    target: command.target,
    authority: await authorityNow(tx, { inbox, user }, message),
  });
  if (!powers.mayUse(tool.target) || (tainted && !powers.mayWrite(tool.target))) return false;
  const { attached } = await targetsOf(tx, inbox);
  const target = attached.find(({ name }) => name === tool.target);
  return target !== undefined && !isAskedFirst(target.asks_first, tool);
}
