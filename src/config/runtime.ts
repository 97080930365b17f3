import { readFileSync } from "node:fs";
import { openLibc } from "../lib/libc.ts";

/**
 * Bun's variable for the maximum of simultaneous fetch requests, read when the process starts, and the largest value that
 * it accepts; slots and memory limit requests instead.
 */
const REQUESTS = { name: "BUN_CONFIG_MAX_HTTP_REQUESTS", value: "65535" };
/** That for the threads which read and write files: as many as there are processors could all hang on a share that is away. */
const THREADS = { name: "UV_THREADPOOL_SIZE", value: "16" };

/**
 * Restarts the program within the same process (execve) with a higher limit of simultaneous requests and more threads for
 * files. Otherwise the 257th request silently waits inside Bun for another to end, so some models or tool servers that
 * never answer would hold up everything. Does nothing where the limit is set, or without such a system call, as on macOS,
 * where both stay.
 */
export async function openManyRequests(): Promise<void> {
  if (process.env[REQUESTS.name] !== undefined || process.platform !== "linux") return;
  const { ptr } = await import("bun:ffi");
  const { symbols } = await openLibc({
    setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
    execv: { args: ["ptr", "ptr"], returns: "i32" },
  });
  // Latin-1 preserves all bytes.
  const line = readFileSync("/proc/self/cmdline", "latin1").split("\0").slice(0, -1);
  const words = line.map((word) => cString(word, "latin1"));
  // An array of pointers that ends with null (execve(2)).
  const list = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
  const keep = 0;
  for (const { name, value } of [REQUESTS, THREADS])
    symbols.setenv(ptr(cString(name)), ptr(cString(value)), keep);
  symbols.execv(ptr(cString(process.execPath)), ptr(list));
}

function cString(text: string, encoding: "utf8" | "latin1" = "utf8"): Buffer {
  return Buffer.from(`${text}\0`, encoding);
}
