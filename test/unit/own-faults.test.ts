import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { isStorageFault } from "../../src/db/storage-faults.ts";
import { isOutOfHandles, NoHandlesError } from "../../src/lib/own-faults.ts";

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
