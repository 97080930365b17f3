import { describe, expect, test } from "bun:test";
import { readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { account, house } from "./house.ts";

describe("what keeps a server from starting is said with its mend", () => {
  test("a taken port, for HTTP and for SMTP", async () => {
    await using first = await house();
    await using server = await first.start();
    const http = server.http.replace("http://", "");
    await using second = await house({ server: { listen: http } });
    expect(await second.cli("serve")).toMatchObject({
      code: 1,
      err: `${http} is in use by another program. Stop it, or choose another port with server.listen.\n`,
    });
    const smtp = `${server.smtp.host}:${server.smtp.port}`;
    await using third = await house({ smtp: { listen: smtp } });
    expect((await third.cli("serve")).err).toContain(`${smtp} is in use by another program.`);
  });

  test("an address that is not of this machine", async () => {
    await using at = await house({ server: { listen: "192.0.2.1:8080" } });
    expect((await at.cli("serve")).err).toContain("192.0.2.1:8080 is not an address of this machine.");
  });

  test("a damaged database", async () => {
    await using at = await house();
    await writeFile(
      join(at.dir, "mailwright.db"),
      "this is no database at all, but it is long enough to be looked at",
    );
    const { code, err } = await at.cli("serve");
    expect([code, err]).toEqual([
      1,
      `The database in ${at.dir} is damaged, or no database at all. Restore the data folder from a backup.\n`,
    ]);
  });

  test("a data folder that is a file", async () => {
    await using at = await house();
    await rm(at.dir, { recursive: true });
    await writeFile(at.dir, "a file");
    const { code, err } = await at.cli("serve");
    expect(code).toBe(1);
    expect(err).toContain(`The data folder ${at.dir} cannot be used`);
    expect(err).toContain("name another with data.dir");
  });

  test("a lost master key, of which no new one is made, and a foreign one", async () => {
    await using at = await house();
    await account(at, "ada@example.com");
    const key = join(at.dir, "master.key");
    await rename(key, `${key}.away`);
    expect((await at.cli("serve")).err).toContain(`The master key ${key} is gone`);
    expect(await readdir(at.dir)).not.toContain("master.key");
    await writeFile(key, Buffer.alloc(32, 9).toString("base64"), { mode: 0o600 });
    expect((await at.cli("serve")).err).toContain("not the one this database was made with");
    await rename(`${key}.away`, key);
    await using server = await at.start();
    expect((await fetch(`${server.http}/livez`)).status).toBe(200);
  });
});

test("a command line that only looks makes no data folder, and says so", async () => {
  await using at = await house();
  await rm(at.dir, { recursive: true });
  const { code, err } = await at.cli("user", "list");
  expect(code).toBe(1);
  expect(err).toContain(`There is no Mailwright in the data folder ${at.dir}.`);
  await expect(stat(at.dir)).rejects.toThrow("ENOENT");
});

test("the database is for its owner's eyes only, also in a folder that was there before", async () => {
  await using at = await house();
  await account(at, "ada@example.com");
  expect((await stat(join(at.dir, "mailwright.db"))).mode & 0o077).toBe(0);
});
