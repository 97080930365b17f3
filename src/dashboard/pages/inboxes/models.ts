import type { Connection, Inbox } from "../../api/shapes.ts";

/** Whether a connection is known not to work; one that was never tested may. */
export function isBroken({ status }: Connection): boolean {
  return status === "error" || status === "needs_auth";
}

/** The model that a new inbox has unless another is chosen: that of the default inbox, or one that works. */
export function usualModel(connections: Connection[], inboxes: Inbox[]): string {
  const models = connections.filter(({ category }) => category === "llm");
  const usual = inboxes.find(({ is_default }) => is_default)?.default_connection_id;
  const own = models.find(({ id }) => id === usual);
  if (own && !isBroken(own)) return own.id;
  const best =
    models.find(({ status }) => status === "ok") ?? models.find((one) => !isBroken(one)) ?? own ?? models[0];
  return best?.id ?? "";
}

/** The model of an inbox if it is known not to work, nor any that is asked in its place. */
export function brokenModel(inbox: Inbox, connections: Connection[] = []): Connection | undefined {
  const model = connections.find(({ id }) => id === inbox.default_connection_id);
  if (!model || !isBroken(model)) return undefined;
  const others = connections.filter(({ id }) => model.fallback_connection_ids.includes(id));
  return others.every(isBroken) ? model : undefined;
}
