import type { FileHandle } from "node:fs/promises";
import { openLibc } from "./libc.ts";

/** From Linux's headers, the same on x86-64 and ARM. */
const KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02;
const SEEK_DATA = 3;

interface Range {
  offset: number;
  size: number;
}

/** System calls for holes: ranges of a file that take no space on the disk. */
interface Sparse {
  /**
   * Returns the blocks of a range to the disk; its bytes read as zeros from then on. Returns false where that is not
   * possible.
   */
  punch: (file: FileHandle, range: Range) => boolean;
  /** Returns the first offset from `offset` on that may hold data; Infinity when there is none. */
  nextData: (file: FileHandle, offset: number) => number;
}

/** Opens the calls. With holes a file that only grows can return the space of what was deleted in it. */
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
    // Without holes zeros still erase the data; only the space on the disk is not returned.
    return { punch: () => false, nextData: (_, offset) => offset };
  }
}
