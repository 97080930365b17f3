import { expect } from "bun:test";
import { mailroom, type Mailroom, type RoomOptions } from "./mailroom.ts";
import { type ModelRequestBody, toolCalls } from "./model-server.ts";
import { type ServedTool, startToolServer, type ToolServer } from "./tool-server.ts";

export type Wanted = { name: string; args?: Record<string, unknown> | string };

/** What the model answers: calls, words, or a whole response. */
export type Round = Wanted[] | string | Response;

export interface ToolRoom extends Mailroom {
  tools: ToolServer;
  connection: { id: string };
}

export const EVENTS: ServedTool = {
  name: "list_events",
  description: "Lists events.",
  annotations: { readOnlyHint: true },
  inputSchema: {
    type: "object",
    properties: { day: { type: "string" }, count: { type: "integer", maximum: 10 } },
    required: ["day"],
    additionalProperties: false,
  },
  run: ({ day }) => `Lunch on ${String(day)}`,
};
export const CREATE: ServedTool = { name: "create_event", description: "Makes one.", run: () => "created 7" };
const CLEAR: ServedTool = {
  name: "clear",
  annotations: { destructiveHint: true },
  run: () => "all gone",
};

/** A mailroom whose inbox has a calendar, and whose model first answers so, one round after the other. */
export async function toolRoom(
  rounds: (Round | ((body: ModelRequestBody) => Round | Promise<Round>))[],
  options: RoomOptions & { served?: ServedTool[]; label?: string } = {},
): Promise<ToolRoom> {
  await using stack = new AsyncDisposableStack();
  const tools = stack.use(startToolServer(options.served ?? [EVENTS, CREATE, CLEAR]));
  const left = [...rounds];
  const room = stack.use(
    await mailroom({
      ...options,
      config: { egress: { allow: ["127.0.0.1"] }, ...options.config },
      model: {
        reply: async (body) => {
          const next = left.shift();
          if (next === undefined) return `Done: ${body.messages.at(-1)?.content}`;
          const round = typeof next === "function" ? await next(body) : next;
          return Array.isArray(round) ? toolCalls(round) : round;
        },
        ...options.model,
      },
    }),
  );
  const { body: connection, status } = await room.owner.post("/connections", {
    kind: "mcp",
    label: options.label ?? "Calendar",
    base_url: tools.url,
  });
  expect(status).toBe(201);
  const patched = await room.owner.patch(`/inboxes/${room.inbox.id}`, {
    mcp_connection_ids: [connection.id],
  });
  expect(patched.status).toBe(200);
  const built = stack.move();
  return { ...room, tools, connection, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

export const list = (day = "Monday"): Wanted => ({ name: "calendar__list_events", args: { day } });
export const create = (args: Record<string, unknown> = { title: "Lunch" }): Wanted => ({
  name: "calendar__create_event",
  args,
});
