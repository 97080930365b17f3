import { recordEvent } from "../../src/resources/webhooks/events.ts";
import type { Caller, TestApp } from "./app.ts";

/** Something happens to an account that its endpoints are told of; gives the id of the event. */
export async function happens(
  t: TestApp,
  { user }: Caller,
  {
    type = "message.completed",
    result = "Grüße, 世界",
  }: { type?: "message.completed" | "message.failed"; result?: string } = {},
): Promise<string> {
  const object = {
    message_id: Bun.randomUUIDv7(),
    conversation_id: null,
    source: "email",
    status: type === "message.completed" ? "done" : "failed",
    result,
    error: null,
    usage: null,
    subject: "Grüße",
    created: t.app.now(),
    inbox_id: null,
    sender: null,
    tags: [],
    attachments: [],
    metadata: {},
  };
  const event = { user_id: user.id, type, livemode: true, object: async () => object };
  const id = await t.app.write((tx) => recordEvent(t.app, tx, event));
  if (id === null) throw new Error("nobody is told of it");
  return id;
}
