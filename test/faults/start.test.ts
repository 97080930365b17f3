import { describe, expect, test } from "bun:test";
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { account, house, inbox } from "./house.ts";
import { untilIdle } from "./load.ts";
import { linesWith, logged, mail } from "./surfaces.ts";

test("the first start of all, whose folders are not there yet, has nothing to warn of", async () => {
  const outbound = { mode: "relay", relay_url: "smtp://127.0.0.1:1" };
  await using at = await house({ outbound, auth: { registration: "closed" } });
  await rm(at.dir, { recursive: true, force: true });
  await using server = await at.start();
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(linesWith(server, '"level":30').length).toBeGreaterThan(1);
  expect(linesWith(server, '"level":40')).toEqual([]);
});

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

  test("a folder of mails that leads to a disk which is away, and one that is a file", async () => {
    await using at = await house();
    const mail = join(at.dir, "mail");
    await account(at, "ada@example.com");
    await rename(mail, `${mail}.away`);
    await symlink(`${at.dir}/nowhere`, mail);
    const { code, err } = await at.cli("serve");
    expect(code).toBe(1);
    expect(err).toStartWith(`The folder of mails ${mail} cannot be used: ENOENT`);
    expect(err).toContain("Mount the disk that it is on");
    await rm(mail);
    await writeFile(mail, "");
    expect((await at.cli("serve")).err).toStartWith(`The folder of mails ${mail} cannot be used: ENOTDIR`);
    await rm(mail);
    await rename(`${mail}.away`, mail);
    await using server = await at.start();
    expect((await fetch(`${server.http}/readyz`)).status).toBe(200);
  });

  test.each(["", "null", "{}", '{"out":[]'])("a damaged plan of a restore: %p", async (plan) => {
    await using at = await house();
    await account(at, "ada@example.com");
    const archive = join(at.dir, "..", "backup.zip");
    expect((await at.cli("backup", archive)).code).toBe(0);
    const work = join(at.dir, ".mailwright-restore");
    await mkdir(work);
    await writeFile(join(work, "plan.json"), plan);
    const words = `The plan of a restore that was cut off, ${work}/plan.json, is damaged`;
    for (const doing of [["serve"], ["restore", archive, "--yes"]])
      expect((await at.cli(...doing)).err).toStartWith(words);
    // As it says.
    await rename(work, `${at.dir}/../away`);
    expect((await at.cli("restore", archive, "--yes")).code).toBe(0);
    await using server = await at.start();
    expect((await fetch(`${server.http}/readyz`)).status).toBe(200);
  });

  test("a damaged file of DKIM keys of the first versions", async () => {
    await using at = await house();
    const path = join(at.dir, "dkim", "keys.json");
    await writeFile(path, "");
    expect((await at.cli("serve")).err).toMatch(
      /^\S+keys.json does not hold DKIM keys \(.*\)\. Put it back from a backup, or remove it .*\n$/,
    );
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

  test("a database that this user cannot open", async () => {
    await using at = await house();
    await account(at, "ada@example.com");
    const path = join(at.dir, "mailwright.db");
    await rename(path, `${path}.away`);
    await mkdir(path);
    const { code, err } = await at.cli("serve");
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /^The data folder \S+ cannot be used: .*\. Give the folder and all that is in it/,
      ),
    ]);
    await rm(path, { recursive: true });
    await rename(`${path}.away`, path);
    await using server = await at.start();
    expect((await fetch(`${server.http}/livez`)).status).toBe(200);
  });

  test("a lost master key is put back by the server that still has it, and by none that has not", async () => {
    await using at = await house();
    await account(at, "ada@example.com");
    const key = join(at.dir, "master.key");
    const text = await readFile(key, "utf8");
    {
      await using server = await at.start();
      await rm(key);
      server.kill("SIGTERM");
      await server.exited;
      expect(await logged(server, "the file master.key was gone")).toHaveLength(1);
    }
    expect([await readFile(key, "utf8"), (await stat(key)).mode & 0o777]).toEqual([text, 0o600]);
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

describe("what can be made anew keeps no server from starting", () => {
  test.each(["", "null", '{"cert":"-----BEGIN CERT', '{"cert":"x","key":"y"}'])(
    "a self-signed certificate that is damaged is made anew, and that is said: %p",
    async (left) => {
      await using at = await house();
      const path = join(at.dir, "smtp-certificate.json");
      await writeFile(path, left);
      {
        await using server = await at.start();
        expect(
          await logged(server, "the self-signed certificate was damaged and was made anew"),
        ).toHaveLength(1);
      }
      const made = await readFile(path, "utf8");
      await using server = await at.start();
      expect(linesWith(server, "certificate was damaged")).toEqual([]);
      expect(await readFile(path, "utf8")).toBe(made);
    },
  );

  test("locks that somebody has written to are locks all the same", async () => {
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    for (const name of ["mailwright.lock", "mailwright.db.lock", "backup.lock"])
      await writeFile(join(at.dir, name), "12345\n");
    await using server = await at.start();
    const to = await inbox(server, owner);
    expect((await mail(server, { to, api_key: owner.api_key })).reply).toStartWith("250");
    await untilIdle(at);
    expect((await at.cli("backup", join(at.dir, "..", "backup.zip"))).code).toBe(0);
    const words = "Another Mailwright is running";
    expect((await at.cli("serve")).err).toContain(words);
    // Nor does what is written while it is held let anybody else in.
    await writeFile(join(at.dir, "mailwright.lock"), "12345\n");
    expect((await at.cli("serve")).err).toContain(words);
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
