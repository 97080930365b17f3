import type { FFIFunction } from "bun:ffi";
import { messageOf } from "../errors.ts";

/** File names of the C library: glibc, and musl on both processors. */
const NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** Opens the C library, for calls that the runtime lacks. Throws where there is none of these, as on macOS. */
export async function openLibc<Symbols extends Record<string, FFIFunction>>(symbols: Symbols) {
  const { dlopen } = await import("bun:ffi");
  const faults: string[] = [];
  for (const name of NAMES) {
    try {
      return dlopen(name, symbols);
    } catch (error) {
      faults.push(messageOf(error));
    }
  }
  throw new Error(faults.join("; "));
}
