import { expect, spyOn, test } from "bun:test";
import { StorageError } from "../../src/db/storage-faults.ts";
import { watchStorage } from "../../src/db/watch.ts";
import { MINUTE_MS } from "../../src/lib/durations.ts";

test("a fault of the disk is said once, again each minute while it goes on, and once more when it is over", () => {
  let now_ms = 0;
  using _clock = spyOn(performance, "now").mockImplementation(() => now_ms);
  const said: string[] = [];
  const say = (level: string) => (_fields: object, words: string) => void said.push(`${level}: ${words}`);
  const watch = watchStorage(null, { error: say("error"), warn: say("warn"), info: say("info") });
  const refuse = (until_ms: number): void => {
    for (; now_ms < until_ms; now_ms += 500) watch.failed(new StorageError("SQLITE_FULL", "no room"));
  };
  refuse(MINUTE_MS);
  expect(said).toEqual([expect.stringMatching(/^error: The disk is full; nothing is taken in until it is/)]);
  refuse(2 * MINUTE_MS + 1);
  expect(said).toHaveLength(3);
  // A disk that is nearly full takes some: that is no end of it yet.
  watch.wrote();
  expect(said).toHaveLength(3);
  now_ms += 5_000;
  for (let commits = 0; commits < 3; commits += 1) watch.wrote();
  expect(said.slice(3)).toEqual(["info: the database can be written again"]);
  refuse(now_ms + 1);
  expect(said).toHaveLength(5);
});
