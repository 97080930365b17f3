import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createVerifiedUser } from "../../src/resources/accounts/accounts.ts";
import { createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { recountStorage, storedBytes } from "../../src/db/account-storage.ts";
import { createLog } from "../../src/lib/log.ts";
import { layKeys } from "../support/keys.ts";

test("another thread counts what an account of a database on disk stores, and what comes meanwhile counts as well", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-recount-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(dir, { recursive: true, force: true }));
  await layKeys(dir);
  const database = { url: `sqlite:${join(dir, "mailwright.db")}` };
  const config = defaultConfig({
    data: { dir },
    database,
    smtp: { domain: "mw.test", hostname: "mx.mw.test" },
  });
  await using app = await createApp(config, { log: createLog({ level: "silent", format: "text" }) });
  const { id: user_id } = await createVerifiedUser(app, { email: "ada@example.com" });
  let made = 0;
  const add = (bytes: number): Promise<unknown> => {
    const context = {
      kind: "knowledge" as const,
      title: "",
      enabled: 1,
      every_inbox: 1,
      version: 1,
      version_created: 0,
      created: 1,
      updated: 1,
    };
    const own = { id: Bun.randomUUIDv7(), user_id, slug: `c${(made += 1)}`, body: "x".repeat(bytes) };
    return app.write((tx) =>
      tx
        .insertInto("contexts")
        .values({ ...context, ...own })
        .execute(),
    );
  };
  await add(5_000);
  await app.db.updateTable("account_storage").set({ bytes: 1 }).execute();
  await Promise.all([recountStorage(app, user_id), add(700), add(40)]);
  expect(await storedBytes(app.db, { user_id })).toEqual([{ bytes: 5_740 }]);
});
