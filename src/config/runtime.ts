import { readFileSync } from "node:fs";
import { openLibc } from "../lib/libc.ts";

/** The runtime's name for how many requests of its own may be under way; it is read when the process starts. */
const VARIABLE = "BUN_CONFIG_MAX_HTTP_REQUESTS";
/** The largest number it takes: what bounds them are slots and memory. */
const MOST = "65535";

/**
 * Begins the program anew, as the same process, with as many requests under way as it likes. Without that the 257th waits
 * inside of the runtime, in silence, for another to end: some models or tool servers that never answer would hold up all.
 * Does nothing where the number is set, or where there is no such system call, as on macOS; that bound then stays.
 */
export async function openManyRequests(): Promise<void> {
  if (process.env[VARIABLE] !== undefined || process.platform !== "linux") return;
  const { ptr } = await import("bun:ffi");
  const { symbols } = await openLibc({
    setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
    execv: { args: ["ptr", "ptr"], returns: "i32" },
  });
  // In Latin-1, so that bytes stay what they are.
  const line = readFileSync("/proc/self/cmdline", "latin1").split("\0").slice(0, -1);
  const words = line.map((word) => cString(word, "latin1"));
  // A list of pointers with a null at its end (execve(2)).
  const list = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
  symbols.setenv(ptr(cString(VARIABLE)), ptr(cString(MOST)), 1);
  symbols.execv(ptr(cString(process.execPath)), ptr(list));
}

function cString(text: string, encoding: "utf8" | "latin1" = "utf8"): Buffer {
  return Buffer.from(`${text}\0`, encoding);
}
