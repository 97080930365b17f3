import { open } from "node:fs/promises";
import { openLibc } from "./libc.ts";

/** From Linux's headers, the same on x86-64 and ARM. */
const DONT_NEED = 4;

/**
 * Has the system forget what it keeps of a file in memory, after a write to the disk has failed. Blocks that are written
 * again while it remembers them may stay unwritten on the disk although their sync succeeds, as on ext4: after a power cut
 * they read as zeros. Does nothing where the system has no such call.
 */
export async function forgetCached(path: string): Promise<void> {
  try {
    const { symbols } = await openLibc({
      posix_fadvise: { args: ["i32", "i64", "i64", "i32"], returns: "i32" },
    });
    await using file = await open(path);
    symbols.posix_fadvise(file.fd, 0, 0, DONT_NEED);
  } catch {
    // What cannot be forgotten is only written again.
  }
}
