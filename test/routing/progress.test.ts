import { expect, test } from "bun:test";
import { list, toolRoom } from "../support/tool-room.ts";

test("the steps of a run can be seen while it goes on, in its story too, and its owner is told of each round", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<string>();
  const last = () => (asked.resolve(), answer.promise);
  await using room = await toolRoom([[list("Monday")], last]);
  const begun = await room.owner.post("/v1/messages", { instruction: "What is on Monday?", async: true });
  const { message_id } = begun.body;
  const told: (string | null)[] = [];
  room.app.changes.listen((await room.owner.get("/auth/me")).body.id, (id) => told.push(id));
  const drained = room.drain();
  await asked.promise;
  const step = { type: "tool_call", name: "list_events", status: "ok", output: "Lunch on Monday" };
  const polled = await room.owner.get(`/v1/messages/${message_id}`);
  expect(polled.body).toMatchObject({ status: "processing", steps: [step] });
  const story = await room.owner.get(`/messages/${message_id}`);
  expect(story.body).toMatchObject({ status: "received", steps: [step] });
  expect(told).toEqual([message_id]);
  answer.resolve("Lunch.");
  await drained;
  const ended = await room.owner.get(`/v1/messages/${message_id}`);
  expect(ended.body).toMatchObject({ status: "done", result: "Lunch.", steps: [step] });
  expect(room.app.progress.size).toBe(0);
});
