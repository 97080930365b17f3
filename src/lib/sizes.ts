const KB = 1_024;
const MB = 1_048_576;

/** A number of bytes as people say it: "30 MB", "1.5 MB", "4 KB". */
export function sizeInWords(bytes: number): string {
  const [unit, name] = bytes < MB ? [KB, "KB"] : [MB, "MB"];
  return `${Math.round((bytes * 10) / unit) / 10} ${name}`;
}
