import { expect, test } from "bun:test";
import { createTurns } from "../../src/lib/turns.ts";

test("the work of one key is done one after the other, in the order it came; other keys do not wait", async () => {
  const inTurn = createTurns();
  const said: string[] = [];
  const first = Promise.withResolvers<void>();
  const works = [
    inTurn("a", () => first.promise.then(() => said.push("a1"))),
    inTurn("a", async () => said.push("a2")),
    inTurn("b", async () => said.push("b")),
  ];
  await works[2];
  first.resolve();
  await Promise.all(works);
  expect(said).toEqual(["b", "a1", "a2"]);
});

test("work that fails says so to its caller alone", async () => {
  const inTurn = createTurns();
  const failing = inTurn("a", () => Promise.reject(new Error("broken")));
  const next = inTurn("a", async () => "done");
  expect(failing).rejects.toThrow("broken");
  expect(await next).toBe("done");
});
