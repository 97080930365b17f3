import { join } from "node:path";
import { describe, expect, spyOn, test } from "bun:test";
import { createMcpPool } from "../../src/ai/mcp.ts";
import { isStorageFault, storageWords } from "../../src/db/storage-faults.ts";
import { isOutOfHandles, NoHandlesError, NoTasksError } from "../../src/lib/own-faults.ts";
import { startWorker } from "../../src/lib/worker.ts";
import { setUp } from "../jobs/work-room.ts";

const SCRIPT = join(import.meta.dir, "fixtures/without-handles.ts");
const FILES = 256;

describe("a process without a handle left", () => {
  test("takes nobody else to be at fault, by whatever way out", async () => {
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("here") });
    const limited = `ulimit -n ${FILES}; exec "$0" "$1" "$2"`;
    const child = Bun.spawn(["sh", "-c", limited, process.execPath, SCRIPT, String(server.port)], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, err.includes("ran out of file descriptors")]).toEqual([0, false]);
    const said = JSON.parse(out) as Record<string, string>;
    expect(Object.keys(said).length).toBeGreaterThan(8);
    for (const [way, whose] of Object.entries(said)) expect([way, whose]).toEqual([way, "ours"]);
  });
});

describe("where the system starts no more", () => {
  // As the runtime says it under a limit of tasks (`prlimit --nproc`), which does not hold for root.
  test("threads, that is this machine's fault, and no try of a job", async () => {
    await using t = await setUp({ route: async () => startWorker("db/recount-worker.ts").terminate() });
    const none = (): never => {
      throw new TypeError("Failed to spawn worker thread");
    };
    using _none = spyOn(globalThis, "Worker").mockImplementation(none as never);
    await t.add();
    await t.worker.drain();
    const words = "EAGAIN: this server can start no more threads and programs";
    expect(await t.jobs()).toMatchObject([
      { status: "pending", attempts: 0, failures: 0, last_error: words },
    ]);
    expect(storageWords(new Error("outside", { cause: new NoTasksError() })).fix).toContain("TasksMax");
  });

  test("programs, that is no fault of the tool server that one was to be", async () => {
    using _none = spyOn(Bun, "spawn").mockImplementation(() => {
      throw Object.assign(new Error("EAGAIN: posix_spawn"), { code: "EAGAIN" });
    });
    await using pool = createMcpPool();
    const transport = { kind: "stdio" as const, command: "papers", args: [], env: {} };
    const program = { id: "1", label: "Papers", target: "mcp:papers", account: "ada", transport };
    const listed = pool.listTools(program, new AbortController().signal);
    await expect(listed).rejects.toThrow(NoTasksError);
  });
});

describe("too many open files", () => {
  const deep = (code: string, depth: number): Error =>
    Object.assign(
      new Error("outside"),
      depth === 0 ? { code } : { code: "ECONNREFUSED", cause: deep(code, depth - 1) },
    );

  test.each(["EMFILE", "ENFILE"])("is known by its code, however deep it lies (%s)", (code) => {
    for (const depth of [0, 1, 4]) {
      expect(isOutOfHandles(deep(code, depth))).toBe(true);
      expect(isStorageFault(deep(code, depth))).toBe(true);
    }
    expect(isOutOfHandles(deep("ECONNRESET", 4))).toBe(false);
    expect(isStorageFault(new NoHandlesError())).toBe(true);
  });

  test("that go round in a circle of causes is no endless search", () => {
    const error = new Error("round");
    error.cause = error;
    expect(isOutOfHandles(error)).toBe(false);
  });
});
