/** A file as `uuencode` of POSIX writes it, with blanks for zero as older ones did. */
export function uuencode(name: string, content: Uint8Array, zero = "`"): string {
  const letter = (value: number): string => (value === 0 ? zero : String.fromCharCode(32 + value));
  const lines: string[] = [];
  for (let at = 0; at < content.length; at += 45) {
    const line = content.subarray(at, at + 45);
    let text = letter(line.length);
    for (let from = 0; from < line.length; from += 3) {
      const [a = 0, b = 0, c = 0] = line.subarray(from, from + 3);
      const six = [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63];
      text += six.map(letter).join("");
    }
    lines.push(text);
  }
  return [`begin 644 ${name}`, ...lines, zero, "end"].join("\n");
}
