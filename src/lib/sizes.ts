export const KB = 1_024;
export const MB = 1_048_576;

/** Returns a number of bytes for people: "30 MB", "1.5 MB", "4 KB". */
export function sizeInWords(bytes: number): string {
  return bytes < MB ? `${Math.ceil(bytes / KB)} KB` : `${Math.round((bytes * 10) / MB) / 10} MB`;
}
