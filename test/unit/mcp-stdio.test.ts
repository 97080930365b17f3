import { describe, expect, test } from "bun:test";
import { createMcpPool, type McpPoolOptions, type McpServer } from "../../src/ai/mcp.ts";
import { createIncoming } from "../../src/net/incoming.ts";

const NEVER = new AbortController().signal;
/** Answers the handshake and lists one tool; `onCall` is what a call does. */
const speaks = (onCall: string, before = ""): string => `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  ${before}
  for await (const line of console) {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize") say({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "p", version: "1" } } });
    else if (method === "tools/list") say({ id, result: { tools: [{ name: "do", inputSchema: { type: "object" } }] } });
    else if (method === "tools/call") { ${onCall} }
    else if (id !== undefined) { typeof onOther === "function" ? onOther() : say({ id, error: { code: -32601, message: "no" } }); }
  }`;
const ANSWERS = `say({ id, result: { content: [{ type: "text", text: String(process.pid) }] } });`;

describe("a program that", () => {
  test("is not there says so", async () => {
    expect(await listing({ command: "no-such-program" })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^Papers could not be started \(.*no-such-program.*\[mcp\.stdio\]/),
    });
  });

  test("ends at once is quoted with its last words, without the secrets in them", async () => {
    const script = `console.error("x".repeat(9000)); console.error("bad key: " + process.env.KEY); process.exit(3)`;
    const found = await listing({ args: ["-e", script], env: { KEY: "secret-0123456789abc" } });
    const message = found.ok ? "" : found.message;
    expect(message).toContain("Papers has ended (code 3).");
    expect(message).toContain("bad key: [key]");
    expect(message.length).toBeLessThan(2_400);
  });

  test("knows only the handshake, and ends at anything else, is started once more", async () => {
    const script = speaks(ANSWERS, "const onOther = () => process.exit(1);");
    expect(await listing({ args: ["-e", script] })).toMatchObject({ ok: true, tools: [{ name: "do" }] });
  });

  test("prints other things besides its answers is understood all the same", async () => {
    const script = speaks(ANSWERS, `console.log("Starting up..."); console.log("{}");`);
    expect(await listing({ args: ["-e", script] })).toMatchObject({ ok: true });
  });

  test("never says anything is given up in time, and ended", async () => {
    const script = `console.error(process.pid); setInterval(() => {}, 1000)`;
    const options = { waits: { connect_ms: 300 } };
    expect(await listing({ args: ["-e", script] }, options)).toMatchObject({
      ok: false,
      message: expect.stringContaining("did not answer in time"),
    });
  });

  test("answers with one endless line is ended", async () => {
    const script = speaks(`process.stdout.write("y".repeat(9 * 1048576));`);
    expect(await called({ args: ["-e", script] })).toMatchObject({
      ok: false,
      text: expect.stringContaining("more than 8 MB"),
    });
  });

  test.each([
    ["objects", "{}\n"],
    ["words", "progress: 7 %\n"],
    ["requests", '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'],
  ])("prints %s without end is ended before it takes much time", async (_what, line) => {
    const flood = `const much = ${JSON.stringify(line)}.repeat(5_000);
      const more = () => process.stdout.write(much, more); more();`;
    const before = process.cpuUsage();
    const outcome = await called({ args: ["-e", speaks(flood)] });
    const { user, system } = process.cpuUsage(before);
    expect(outcome).toMatchObject({ ok: false, text: expect.stringContaining("more than 8 MB") });
    expect(user + system).toBeLessThan(5_000_000);
  });

  test("answers with many parts is ended, for who waits is not to wait for ever", async () => {
    const answers = (count: number): string =>
      `say({ id, result: { content: [{ type: "text", text: "heard" }], structuredContent: { a: Array(${count}).fill({}) } } });`;
    expect(await called({ args: ["-e", speaks(answers(20_000))] })).toMatchObject({
      ok: false,
      text: expect.stringContaining("50,000 parts"),
    });
    expect(await called({ args: ["-e", speaks(answers(10_000))] })).toMatchObject({
      ok: true,
      text: "heard",
    });
  });

  test("ends in the middle of a call is not asked again, but started for the next one", async () => {
    const script = speaks(`if (params.arguments.die) process.exit(4); ${ANSWERS}`);
    await using pool = createMcpPool();
    const { call } = await only(pool, program({ args: ["-e", script] }));
    expect(await call({ die: true })).toMatchObject({
      ok: false,
      text: expect.stringContaining("has ended (code 4)"),
    });
    expect(await call({})).toMatchObject({ ok: true });
  });

  test("ended between two calls is started again for the second", async () => {
    const script = speaks(ANSWERS);
    await using pool = createMcpPool();
    const { call } = await only(pool, program({ args: ["-e", script] }));
    const { text: first } = await call({});
    process.kill(Number(first), "SIGKILL");
    await gone(Number(first));
    const { ok, text: second } = await call({});
    expect(ok).toBe(true);
    expect(second).not.toBe(first);
  });
});

test("a program and what it started end with the pool, if need be by force", async () => {
  const child = `setInterval(() => {}, 1000); process.on("SIGTERM", () => {});`;
  const start = `
    process.on("SIGTERM", () => {});
    const child = Bun.spawn([process.execPath, "-e", ${JSON.stringify(child)}], { stdio: ["ignore", "ignore", "ignore"] });`;
  const script = speaks(
    `say({ id, result: { content: [{ type: "text", text: process.pid + " " + child.pid }] } });`,
    start,
  );
  const pool = createMcpPool({ waits: { end_ms: 200 } });
  const { call } = await only(pool, program({ args: ["-e", script] }));
  const { text } = await call({});
  await pool[Symbol.asyncDispose]();
  await Promise.all(text.split(" ").map((pid) => gone(Number(pid))));
});

test("a long answer of a program waits until it may be held", async () => {
  const open = createIncoming(2);
  const other = open("ada");
  await other.holds(1_048_576);
  const asked = Promise.withResolvers<void>();
  const incoming = (account: string) => {
    const one = open(account);
    const holds = (bytes: number): Promise<void> => {
      if (bytes > 262_144) asked.resolve();
      return one.holds(bytes);
    };
    return { ...one, holds };
  };
  await using pool = createMcpPool({ incoming });
  const script = speaks(`say({ id, result: { content: [{ type: "text", text: "x".repeat(1048576) }] } });`);
  const { call } = await only(pool, program({ args: ["-e", script] }));
  let is_answered = false;
  const answer = call({}).then((outcome) => {
    is_answered = true;
    return outcome;
  });
  await asked.promise;
  expect(is_answered).toBe(false);
  await other.holds(0);
  expect(await answer).toMatchObject({ ok: true });
  await open("ada").holds(1_048_576);
});

test("an account has one process of a program, through whichever connection it is used, and each by its name", async () => {
  await using pool = createMcpPool();
  const script = speaks(`if (params.arguments.die) process.exit(4); ${ANSWERS}`);
  const one = program({ args: ["-e", script] });
  const uses = [
    one,
    { ...one, id: "p-2", label: "Other" },
    { ...one, id: "p-3", account: "eve" },
    program({ args: ["-e", script, "--else"] }),
  ];
  const tools = [];
  for (const server of uses) tools.push(await only(pool, server));
  const [first = "", second, ...others] = await Promise.all(
    tools.map(async ({ call }) => (await call({})).text),
  );
  expect(second).toBe(first);
  expect(new Set([first, ...others]).size).toBe(3);
  expect((await tools[1]?.call({ die: true }))?.text).toStartWith("Other has ended (code 4)");
});

test("a program ends when nobody used it for a while", async () => {
  await using pool = createMcpPool({ idle_ms: 20 });
  const { call } = await only(pool, program({ args: ["-e", speaks(ANSWERS)] }));
  await gone(Number((await call({})).text));
});

test("whoever may not use a program any more is told so, even where it runs already", async () => {
  let refusal: string | null = null;
  await using pool = createMcpPool();
  const server = program({ args: ["-e", speaks(ANSWERS)], refusal: () => Promise.resolve(refusal) });
  const { call } = await only(pool, server);
  expect((await call({})).ok).toBe(true);
  refusal = "It is for others.";
  expect(await call({})).toEqual({ ok: false, text: "It is for others.", files: [], of_server: true });
  expect(await pool.listTools(server, NEVER)).toEqual({ ok: false, message: "It is for others." });
});

type Program = Extract<McpServer["transport"], { kind: "stdio" }>;

function program(more: Partial<Program>): McpServer {
  const env = { PATH: "/usr/bin:/bin", ...more.env };
  const transport = { kind: "stdio" as const, command: process.execPath, args: [], ...more, env };
  return { id: "p-1", account: "ada", label: "Papers", target: "mcp:papers", transport };
}

async function listing(more: Partial<Program>, options?: McpPoolOptions) {
  await using pool = createMcpPool(options);
  return await pool.listTools(program(more), NEVER);
}

async function called(more: Partial<Program>) {
  await using pool = createMcpPool();
  const { call } = await only(pool, program(more));
  return await call({});
}

async function only(pool: ReturnType<typeof createMcpPool>, server: McpServer) {
  const found = await pool.listTools(server, NEVER);
  const tool = found.ok ? found.tools[0] : undefined;
  if (tool === undefined) throw new Error(found.ok ? "no tool" : found.message);
  return { call: (args: Record<string, unknown>) => tool.call(args, NEVER) };
}

/** Resolves as soon as there is no such process any more. */
async function gone(pid: number): Promise<void> {
  try {
    process.kill(pid, 0);
  } catch {
    return;
  }
  await Bun.sleep(5);
  return gone(pid);
}
