import { expect, spyOn, test } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageError, storageWords } from "../../src/db/storage-faults.ts";
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

const malformed = () =>
  Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });

async function until(done: () => boolean): Promise<void> {
  for (let times = 0; times < 400 && !done(); times++) await Bun.sleep(50);
  expect(done()).toBe(true);
}

/** Why nothing is written; "" where it may be. */
function refusalOf(watch: ReturnType<typeof watchStorage>): string {
  try {
    watch.refuseIfDamaged();
    return "";
  } catch (error) {
    const { message, fix } = storageWords(error);
    return `${message}. ${fix}`;
  }
}

test("a disk that gives something else for a moment is not called damage, and is believed again within seconds, each time", async () => {
  const dir = await mkdtemp(join(tmpdir(), "watch-"));
  const path = join(dir, "sound.db");
  new Database(path).run("create table a (b)");
  const said: string[] = [];
  const say = (_fields: object, words: string) => void said.push(words);
  const watch = watchStorage(path, { error: say, warn: say, info: say });
  for (let times = 0; times < 3; times++) {
    watch.failed(malformed());
    expect(refusalOf(watch)).toContain("may be damaged");
    expect(refusalOf(watch)).not.toContain("restore FILE");
    await until(() => refusalOf(watch) === "");
  }
  expect(said.join(" ")).not.toContain("restore FILE");
  expect(said.filter((words) => words.includes("is sound")).length).toBe(3);
  await rm(dir, { recursive: true });
}, 60_000);

test("what is found twice is damage, and says what to do", async () => {
  const dir = await mkdtemp(join(tmpdir(), "watch-"));
  const path = join(dir, "damaged.db");
  await Bun.write(path, "no database ".repeat(1_000));
  const said: string[] = [];
  const say = (_fields: object, words: string) => void said.push(words);
  const watch = watchStorage(path, { error: say, warn: say, info: say });
  watch.failed(malformed());
  await until(() => refusalOf(watch).includes("is damaged"));
  expect(refusalOf(watch)).toContain("restore FILE");
  expect(said.join(" ")).toContain("The database is damaged; nothing is taken in until it is well.");
  await rm(dir, { recursive: true });
}, 60_000);
