/** RFC 2426 §2.6, without the line end. */
const MAX_LINE_OCTETS = 75;
const NOTE =
  "Send or forward mail to this address and the answer comes back by mail. Whoever knows the address can write to it: keep it to yourself.";

/** A card in version 3.0 (RFC 2426), which the address books of iOS, Google and Outlook all import. */
export function vcardOf(inbox: { id: string; label: string; address: string }): string {
  const name = escapeText(inbox.label.trim() === "" ? inbox.address : inbox.label.trim());
  const lines = [
    "BEGIN:VCARD",
    "VERSION:3.0",
    `N:${name};;;;`,
    `FN:${name}`,
    `EMAIL;TYPE=INTERNET:${escapeText(inbox.address)}`,
    `NOTE:${escapeText(NOTE)}`,
    `UID:urn:uuid:${inbox.id}`,
    "END:VCARD",
  ];
  return lines.map((line) => `${fold(line)}\r\n`).join("");
}

/** What the card is called as a file, on every system. */
export function cardFileName(label: string): string {
  const name = label
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\u202A-\u202E\u2066-\u2069/\\:*?"<>|]+/gu, " ")
    .replace(/^[\s.]+/, "")
    .trimEnd();
  return `${name === "" ? "inbox" : name}.vcf`;
}

/** RFC 2426 §5, text-value; other control characters cannot stand in one. */
function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\P{Cc}\n]+/gu, " ")
    .replaceAll(/[\\,;]/g, String.raw`\$&`)
    .replaceAll("\n", String.raw`\n`);
}

/** RFC 2426 §2.6. Many programs read a character that was cut in two as two broken ones, so none is. */
function fold(line: string): string {
  const folded: string[] = [];
  let part = "";
  let octets = 0;
  for (const char of line) {
    const size = Buffer.byteLength(char);
    if (octets + size > MAX_LINE_OCTETS) {
      folded.push(part);
      part = " ";
      octets = 1;
    }
    part += char;
    octets += size;
  }
  return [...folded, part].join("\r\n");
}
