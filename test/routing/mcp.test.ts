import { describe, expect, test } from "bun:test";
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { mcpServerOf } from "../../src/resources/connections/mcp-server.ts";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { startMcpStandIn } from "../support/mcp-server.ts";

const NEVER = new AbortController().signal;
const ECHO = `
  for await (const line of console) {
    const { id, method } = JSON.parse(line);
    const results = {
      initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "echo", version: "1" } },
      "tools/list": { tools: [{ name: "env", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: JSON.stringify(process.env) }] },
    };
    const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: "no" } };
    if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
  }`;
const PROGRAM = { command: process.execPath, args: ["-e", ECHO] };
const NO_SUCH = (name: string) =>
  `There is no tool server "${name}" here for your account. The operator of this server can set one up, or open it to you, in [mcp.stdio] of the configuration.`;

describe("a program of the operator's", () => {
  test("is used by a connection that names it, with nothing of this server's environment but PATH and HOME", async () => {
    await using t = await programs();
    const admin = await t.as("root@example.com");
    const { body } = await admin.post("/connections", {
      kind: "mcp",
      label: "My Papers",
      base_url: "stdio:papers",
    });
    expect(body).toMatchObject({ kind: "mcp", base_url: "stdio:papers", has_credential: false });
    const server = await serverOf(t, body.id);
    expect(server.target).toBe("mcp:my-papers");
    const listing = await t.app.mcp.listTools(server, NEVER);
    const outcome = listing.ok ? await listing.tools[0]?.call({}, NEVER) : undefined;
    const seen = JSON.parse(outcome?.text ?? "{}") as Record<string, string>;
    expect(Object.keys(seen).sort()).toEqual(["HOME", "PATH", "TEAM"]);
    const home = seen["HOME"] ?? "";
    expect(home).toEndWith(join(admin.user.id, "papers"));
    expect(relative(t.app.config.data.dir, home)).toStartWith("..");
    expect((await stat(home)).mode & 0o777).toBe(0o700);
    await rm(join(home, "../.."), { recursive: true });
  });

  test("has a folder for each account, where mcp.dir says, which goes with the account", async () => {
    await using t = await programs();
    const dir = await mkdtemp(join(tmpdir(), "mailwright-homes-"));
    t.app.config.mcp.dir = dir;
    await t.as("root@example.com");
    const [ada, bob] = [await t.as("ada@example.com"), await t.as("bob@example.com")];
    for (const who of [ada, bob]) {
      const { body } = await who.post("/connections", { kind: "mcp", base_url: "stdio:open" });
      expect((await who.post(`/connections/${body.id}/test`)).body.ok).toBe(true);
    }
    expect((await readdir(dir)).toSorted()).toEqual([ada.user.id, bob.user.id].toSorted());
    await writeFile(join(dir, ada.user.id, "open", "notes.txt"), "mine");
    await t.request("/auth/account", {
      method: "DELETE",
      headers: { "x-api-key": ada.key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: "ada@example.com" }),
    });
    await t.drain();
    t.clock.advance("1d");
    await t.drain();
    expect(await readdir(dir)).toEqual([bob.user.id]);
    await rm(dir, { recursive: true });
  });

  test("says so where there can be no folder, or where another user of the machine could have made it", async () => {
    await using t = await programs();
    const admin = await t.as("root@example.com");
    const dir = await mkdtemp(join(tmpdir(), "mailwright-homes-"));
    await writeFile(join(dir, "file"), "");
    const draft = { kind: "mcp", base_url: "stdio:papers" };
    t.app.config.mcp.dir = join(dir, "file", "below");
    const none = (await admin.post("/connections/test", draft)).body.error.message;
    expect(none).toMatch(/There is no folder for it to run in: .*mcp\.dir/);
    t.app.config.mcp.dir = "";
    const { body } = await admin.post("/connections", draft);
    await admin.post(`/connections/${body.id}/test`);
    const server = await serverOf(t, body.id);
    const home = "env" in server.transport ? (server.transport.env["HOME"] ?? "") : "";
    await chmod(join(home, "../.."), 0o755);
    const open = (await admin.post("/connections/test", draft)).body.error.message;
    expect(open).toContain("is not this server's alone");
    await rm(join(home, "../.."), { recursive: true });
    await rm(dir, { recursive: true });
  });

  test("can be tested like any other connection", async () => {
    await using t = await programs();
    const admin = await t.as("root@example.com");
    const test = async (base_url: string) => {
      const { body } = await admin.post("/connections", { kind: "mcp", label: "Papers", base_url });
      return (await admin.post(`/connections/${body.id}/test`)).body;
    };
    expect(await test("stdio:papers")).toMatchObject({
      ok: true,
      status: "ok",
      detail: "1 tool",
      server_info: { name: "echo", version: "1" },
      tools: ["env"],
      error: null,
    });
    expect(await test("stdio:broken")).toMatchObject({
      ok: false,
      status: "error",
      error: {
        code: "unreachable",
        message: expect.stringContaining("Its last words: out of order"),
        http_status: null,
      },
    });
  });

  test("is for administrators, and for those whom the operator names: others hear that there is none", async () => {
    await using t = await programs();
    const admin = await t.as("root@example.com");
    const [ada, bob] = [await t.as("ada@example.com"), await t.as("bob@example.com")];
    const status = async (who: Caller, name: string) => {
      const answer = await who.post("/connections", { kind: "mcp", base_url: `stdio:${name}` });
      if (answer.status === 422)
        expect(answer.body.errors).toEqual([
          { path: "body.base_url", code: "unknown_program", message: NO_SUCH(name) },
        ]);
      return answer.status;
    };
    const statuses = (who: Caller) =>
      Promise.all(
        ["papers", "shared", "open", "missing", "constructor", ""].map((name) => status(who, name)),
      );
    expect(await statuses(admin)).toEqual([201, 201, 201, 422, 422, 422]);
    expect(await statuses(ada)).toEqual([422, 201, 201, 422, 422, 422]);
    expect(await statuses(bob)).toEqual([422, 422, 201, 422, 422, 422]);
    const listed = async (who: Caller) => (await who.get("/connections/programs")).body;
    const entry = (name: string) => ({ name, base_url: `stdio:${name}` });
    expect(await listed(admin)).toEqual(["papers", "shared", "open", "broken"].map(entry));
    expect(await listed(ada)).toEqual(["shared", "open"].map(entry));
    expect(await listed(bob)).toEqual([entry("open")]);
  });

  test("can be neither reached nor changed by way of another connection", async () => {
    await using t = await programs();
    await t.as("root@example.com");
    const bob = await t.as("bob@example.com");
    const { body: open } = await bob.post("/connections", { kind: "mcp", base_url: "stdio:open" });
    expect((await bob.patch(`/connections/${open.id}`, { base_url: "stdio:papers" })).status).toBe(422);
    for (const base_url of ["stdio:papers", "STDIO:open", "stdio://open"]) {
      const kind = base_url === "stdio:papers" ? "openai_compatible" : "mcp";
      const answer = await bob.post("/connections", { kind, base_url });
      expect(answer.body.errors).toMatchObject([{ path: "body.base_url" }]);
    }
    expect((await bob.patch(`/connections/${open.id}`, { label: "Mine" })).status).toBe(200);
  });

  test("is asked for again at each use: who lost it, or whose is gone, gets a sentence", async () => {
    await using t = await programs();
    await t.as("root@example.com");
    const ada = await t.as("ada@example.com");
    const { body } = await ada.post("/connections", {
      kind: "mcp",
      label: "Shared",
      base_url: "stdio:shared",
    });
    const server = await serverOf(t, body.id);
    expect((await t.app.mcp.listTools(server, NEVER)).ok).toBe(true);
    const { shared } = t.app.config.mcp.stdio;
    if (shared) shared.accounts = [];
    const refused = { ok: false, message: NO_SUCH("shared") };
    expect(await t.app.mcp.listTools(server, NEVER)).toEqual(refused as never);
    const verdict = async () => (await ada.post(`/connections/${body.id}/test`)).body.error;
    expect(await verdict()).toMatchObject({ message: NO_SUCH("shared") });
    delete t.app.config.mcp.stdio["shared"];
    expect(serverOf(t, body.id)).rejects.toThrow(NO_SUCH("shared"));
    expect(await verdict()).toMatchObject({ code: "forbidden", message: NO_SUCH("shared") });
  });
});

test("a connection's headers and account decide which session is used, its secrets being opened for it", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", {
    kind: "mcp",
    label: "Kalender & Co",
    base_url: "https://tools.example.com/mcp",
    credential: "token-one",
    headers: { "x-team": "red" },
  });
  const before = await serverOf(t, body.id);
  expect(before).toMatchObject({
    id: body.id,
    label: "Kalender & Co",
    target: "mcp:kalender-co",
    transport: { kind: "http", url: "https://tools.example.com/mcp", headers: { "x-team": "red" } },
  });
  expect(JSON.stringify(before)).not.toContain("token-one");
  await ada.patch(`/connections/${body.id}`, { credential: "token-two" });
  const after = await serverOf(t, body.id);
  expect(after.transport).not.toMatchObject({
    identity: (before.transport as { identity: string }).identity,
  });
});

test("a connection that is moved or deleted in the middle of a run gets neither another call nor a newer secret", async () => {
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] }, mcp: { stdio: { papers: PROGRAM } } });
  const admin = await t.as("root@example.com");
  await using server = startMcpStandIn();
  const changes: [string, (path: string) => Promise<Answer>][] = [
    [
      server.url,
      (path) => admin.patch(path, { base_url: "https://other.example", credential: "newer-secret" }),
    ],
    [server.url, (path) => admin.delete(path)],
    ["stdio:papers", (path) => admin.patch(path, { base_url: server.url, credential: "newer-secret" })],
    ["stdio:papers", (path) => admin.delete(path)],
  ];
  for (const [base_url, change] of changes) {
    const input = { kind: "mcp", label: "Desk", base_url, credential: "older-secret" };
    const { body } = await admin.post("/connections", input);
    const listing = await t.app.mcp.listTools(await serverOf(t, body.id), NEVER);
    const [tool] = listing.ok ? listing.tools : [];
    expect((await tool?.call({}, NEVER))?.ok).toBe(true);
    const before = server.requests.length;
    expect((await change(`/connections/${body.id}`)).status).toBeLessThan(300);
    expect(await tool?.call({}, NEVER)).toMatchObject({
      ok: false,
      text: `${body.label}: The connection was changed or deleted meanwhile. Ask again.`,
    });
    expect(server.requests).toHaveLength(before);
  }
});

function programs(): Promise<TestApp> {
  const broken = {
    command: process.execPath,
    args: ["-e", `console.error("out of order"); process.exit(1)`],
  };
  return testApp({
    mcp: {
      stdio: {
        papers: { ...PROGRAM, env: { TEAM: "red" } },
        shared: { ...PROGRAM, accounts: ["Ada@example.com"] },
        open: { ...PROGRAM, accounts: ["*"] },
        broken,
      },
    },
  });
}

async function serverOf(t: TestApp, id: string) {
  const row = await t.app.db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return mcpServerOf(t.app, row, (refused) => freshToken(t.app, id, refused));
}
