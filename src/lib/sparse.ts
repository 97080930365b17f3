import type { FileHandle } from "node:fs/promises";
import { openLibc } from "./libc.ts";

/** From Linux's headers, the same on x86-64 and ARM. */
const KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02;
const SEEK_DATA = 3;

interface Range {
  offset: number;
  size: number;
}

/** What the system can do about parts of files that hold nothing. */
interface Sparse {
  /** Returns the blocks of a range to the disk; its bytes read as zeros from then on. False where that is not possible. */
  punch: (file: FileHandle, range: Range) => boolean;
  /** The first byte from `offset` on that may be none of a hole; infinite when there is none. */
  nextData: (file: FileHandle, offset: number) => number;
}

/** Holes cost no disk: with them a file that only grows gives back what was deleted in it. */
export function openSparse(): Promise<Sparse> {
  return (opened ??= open());
}

let opened: Promise<Sparse> | undefined;

async function open(): Promise<Sparse> {
  try {
    const { symbols } = await openLibc({
      fallocate: { args: ["i32", "i32", "i64", "i64"], returns: "i32" },
      lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
    });
    return {
      punch: ({ fd }, { offset, size }) => symbols.fallocate(fd, KEEP_SIZE_PUNCH_HOLE, offset, size) === 0,
      nextData({ fd }, offset) {
        const found = Number(symbols.lseek(fd, offset, SEEK_DATA));
        return found < 0 ? Number.POSITIVE_INFINITY : found;
      },
    };
  } catch {
    // Zeros are as good to whoever reads; only the disk has no more room for it.
    return { punch: () => false, nextData: (_, offset) => offset };
  }
}
