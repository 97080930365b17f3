import type { FFIFunction } from "bun:ffi";
import { messageOf } from "../errors.ts";

/** Where the C library is called so: GNU, and musl on both processors. */
const NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** For what the runtime has no call for. Throws where there is no such library, as on macOS. */
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
