import { expect } from "bun:test";
import { mailroom, type Mailroom, type RoomOptions } from "./mailroom.ts";
import type { ModelRequestBody } from "./model-server.ts";

/** A mailroom whose owner has these contexts. */
export async function withContexts(
  contexts: Record<string, unknown>[],
  options: RoomOptions = {},
): Promise<Mailroom> {
  const room = await mailroom(options);
  for (const context of contexts) {
    const { status } = await room.owner.post("/contexts", context);
    expect(status).toBe(201);
  }
  return room;
}

/** Returns the body of a request that makes a context. */
export function context(slug: string, body: string, kind = "instruction"): Record<string, string> {
  return { title: `About ${slug}`, slug, kind, body };
}

/** What the model was asked last: the system message, and the last user message. */
export function asked(room: Mailroom): { system: string; user: string; body: ModelRequestBody } {
  const body = room.model.requests.at(-1)?.body;
  if (!body) throw new Error("The model was not asked");
  return {
    system: body.messages[0]?.content ?? "",
    user: body.messages.findLast(({ role }) => role === "user")?.content ?? "",
    body,
  };
}

/** What becomes of an instruction that the owner gives by HTTP. */
export async function call(room: Mailroom, instruction: string, more: Record<string, unknown> = {}) {
  const { body, status } = await room.owner.post("/v1/messages", { instruction, ...more });
  expect(status).toBe(200);
  return body;
}
