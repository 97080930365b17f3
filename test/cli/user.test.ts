import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtBinary } from "../support/binary.ts";
import { account, house, inbox, type ServerProcess } from "../faults/house.ts";
import { until } from "../support/until.ts";

const BINARY = await builtBinary();
const EMAIL = "ada@example.com";

/** Returns the status and the cookie. */
async function login(server: ServerProcess, password: string): Promise<{ status: number; cookie: string }> {
  const answer = await fetch(`${server.http}/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: EMAIL, password }),
  });
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  return { status: answer.status, cookie };
}

function me(server: ServerProcess, headers: Record<string, string>): Promise<number> {
  return fetch(`${server.http}/auth/me`, { headers }).then(({ status }) => status);
}

test("beside a running server a password is reset: the old one and every browser are out, the API key stays", async () => {
  await using at = await house();
  const { api_key } = await account(at, EMAIL);
  await using server = await at.start();
  const first = await at.cli("user", "reset-password", "Ada@EXAMPLE.com");
  const [, old = ""] = /^New password of ada@example\.com, shown this once: (\S{20})$/m.exec(first.out) ?? [];
  const [, id = ""] =
    /^The API key mw_live_\w+…\w{4} goes on; to end it: mailwright api-key revoke ada@example\.com (\S+)$/m.exec(
      first.out,
    ) ?? [];
  const { status, cookie } = await login(server, old);
  expect(status).toBe(200);
  expect(await me(server, { cookie })).toBe(200);
  const again = JSON.parse((await at.cli("user", "reset-password", EMAIL, "--json")).out);
  expect(again).toMatchObject({ email: EMAIL, plan: "team" });
  expect(await me(server, { cookie })).toBe(401);
  expect((await login(server, old)).status).toBe(401);
  expect((await login(server, again.password)).status).toBe(200);
  expect(await me(server, { "x-api-key": api_key })).toBe(200);
  const listed = await at.cli("api-key", "list", EMAIL);
  expect(listed.out).toContain(api_key.slice(-4));
  expect(listed.out).not.toContain(api_key);
  expect(JSON.parse((await at.cli("api-key", "list", EMAIL, "--json")).out).keys[0].last4).toBe(
    api_key.slice(-4),
  );
  expect((await at.cli("api-key", "list", "nobody@example.com")).code).toBe(1);
  const wrong = await at.cli("api-key", "revoke", EMAIL, api_key);
  expect([wrong.code, wrong.err]).toEqual([
    1,
    expect.stringContaining("No key of ada@example.com has this id"),
  ]);
  expect(wrong.err).not.toContain(api_key);
  expect((await at.cli("api-key", "revoke", EMAIL, id)).code).toBe(0);
  expect(await me(server, { "x-api-key": api_key })).toBe(401);
  const other = JSON.parse((await at.cli("api-key", "create", EMAIL, "--json")).out);
  const events = await fetch(`${server.http}/auth/security-events`, { headers: { "x-api-key": other.key } });
  expect(await events.json()).toContainEqual(
    expect.objectContaining({ kind: "api_key_created", client: null, api_key: null }),
  );
}, 30_000);

test("beside a running server an account is deleted once that was confirmed, and erased by the server", async () => {
  await using at = await house();
  await account(at, EMAIL);
  const bob = await account(at, "bob@example.com");
  await using server = await at.start();
  await inbox(server, bob);
  const asked = await at.cli("user", "delete", "bob@example.com");
  expect([asked.code, asked.err]).toEqual([
    1,
    expect.stringContaining("Say --yes if that is what you want."),
  ]);
  expect(asked.err).toContain("This deletes the account bob@example.com with all of its inboxes, messages");
  expect(await me(server, { "x-api-key": bob.api_key })).toBe(200);
  const { code, out } = await at.cli("user", "delete", "Bob@example.com", "--yes");
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/^bob@example\.com is deleted: .*\n.*erased by the server/),
  ]);
  expect(await me(server, { "x-api-key": bob.api_key })).toBe(401);
  const database = at.database();
  await until(() => database.prepare("select count(*) from users").pluck().get() === 1);
  database.close();
  const again = await at.cli("user", "delete", "bob@example.com", "--yes");
  expect([again.code, again.err]).toEqual([
    1,
    expect.stringContaining("There is no account for bob@example.com."),
  ]);
  const last = JSON.parse((await at.cli("user", "delete", EMAIL, "--yes", "--json")).out);
  expect(last).toMatchObject({ email: EMAIL, is_admin: true });
  expect((await at.cli("user", "list")).out).toContain("There are no accounts yet.");
}, 60_000);

test("accounts are listed and moved to another plan; an unknown address is told in words", async () => {
  await using at = await house();
  await account(at, EMAIL);
  const { out } = await at.cli("user", "set-plan", EMAIL, "free", "--json");
  expect(JSON.parse(out)).toMatchObject({ email: EMAIL, plan: "free", is_admin: true });
  const database = at.database();
  expect((await at.cli("user", "list")).out).toBe("ada@example.com  free  administrator\n");
  database.exec("update users set email_verified = 0");
  database.close();
  expect((await at.cli("user", "list")).out).toStartWith(
    "ada@example.com  free  administrator  not verified\n",
  );
  expect(JSON.parse((await at.cli("user", "list", "--json")).out)).toMatchObject([{ email: EMAIL }]);
  for (const words of [
    ["reset-password", "bob@example.com"],
    ["set-plan", "bob@example.com", "pro"],
  ]) {
    const { code, err } = await at.cli("user", ...words);
    expect([code, err]).toEqual([1, expect.stringContaining("There is no account for bob@example.com.")]);
  }
  expect((await at.cli("user", "set-plan", EMAIL, "gold")).code).toBe(1);
});

test("auth.admin_email makes an account that is there already an administrator, at the next start", async () => {
  await using at = await house();
  for (const email of [EMAIL, "bob@example.com"]) await account(at, email);
  {
    await using server = await at.start({ MAILWRIGHT_AUTH__ADMIN_EMAIL: "Bob@Example.com" });
    expect(server.log()).toContain("the account of auth.admin_email administers this server from now on");
  }
  const both = "ada@example.com  team  administrator\nbob@example.com  team  administrator\n";
  expect((await at.cli("user", "list")).out).toBe(both);
  await using again = await at.start({ MAILWRIGHT_AUTH__ADMIN_EMAIL: "Bob@Example.com" });
  expect(again.log()).not.toContain("from now on");
});

test("that the last administrator has gone is said when it happens, at each start, by doctor and by the list, with the way back", async () => {
  await using at = await house();
  const ada = await account(at, EMAIL);
  await account(at, "bob@example.com");
  const words = "nobody administers this server";
  {
    await using server = await at.start();
    const gone = await fetch(`${server.http}/auth/account`, {
      method: "DELETE",
      headers: { "x-api-key": ada.api_key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: EMAIL }),
    });
    expect(gone.status).toBe(204);
    await until(() => server.log().includes(words));
  }
  const listed = await at.cli("user", "list");
  expect(listed.out).toStartWith("bob@example.com  team\nNobody administers this server.");
  expect(listed.out).toContain("auth.admin_email");
  expect(JSON.parse((await at.cli("user", "list", "--json")).out)).toHaveLength(1);
  const findings = JSON.parse((await at.cli("doctor", "--json")).out);
  expect(JSON.stringify(findings)).toContain('"name":"administrator","verdict":"fail"');
  {
    await using server = await at.start();
    expect(server.log()).toContain(words);
  }
  {
    await using server = await at.start({ MAILWRIGHT_AUTH__ADMIN_EMAIL: "bob@example.com" });
    expect(server.log()).not.toContain(words);
  }
  expect((await at.cli("user", "list")).out).toBe("bob@example.com  team  administrator\n");
}, 60_000);

test("a folder in which a new server begins, and that nobody has named, is said", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mailwright-nowhere-"));
  const run = async (email: string) => {
    const child = Bun.spawn([BINARY, "user", "create", email, "--json"], {
      cwd: folder,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, JSON.parse(out)]).toMatchObject([0, { email }]);
    return err;
  };
  expect(await run(EMAIL)).toContain(`a new server begins in ${join(folder, "data")}`);
  expect(await run("bob@example.com")).toBe("");
  await rm(folder, { recursive: true });
});

test("an address that is refused leaves no folder behind", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mailwright-nowhere-"));
  const create = (email: string) =>
    Bun.spawn([BINARY, "user", "create", email], { cwd: folder, stdout: "ignore", stderr: "pipe" });
  const refused = create("notanaddress");
  expect(await new Response(refused.stderr).text()).toContain("address");
  expect(await refused.exited).not.toBe(0);
  expect(await readdir(folder)).toEqual([]);
  expect(await create(EMAIL).exited).toBe(0);
  expect(await readdir(folder)).toEqual(["data"]);
  await rm(folder, { recursive: true });
});

test("a server whose backups have no place says so at its start", async () => {
  await using at = await house({ backup: { dir: "/nowhere/mailwright" } });
  await using server = await at.start();
  await until(() => server.log().includes("backup.dir is in /nowhere"));
});

test("says when what it shows once could not be written", async () => {
  await using at = await house();
  await account(at, EMAIL);
  const words = ["user", "reset-password", EMAIL, "--config", join(at.dir, "../config.toml")];
  const command = Bun.spawn(["sh", "-c", `exec "$0" "$@" > /dev/full`, BINARY, ...words], {
    cwd: at.dir,
    stderr: "pipe",
  });
  const said = await new Response(command.stderr).text();
  expect(await command.exited).toBe(1);
  expect(said).toContain("The output could not be written");
  expect(said).toContain("make another one");
});

test("a new account's key has the name that keys have everywhere, beside its own", async () => {
  await using at = await house();
  const { out } = await at.cli("user", "create", EMAIL, "--api-key", "--json");
  const { api_key, key } = JSON.parse(out) as { api_key: string; key: string };
  expect(key).toStartWith("mw_live_");
  expect(key).toBe(api_key);
});
