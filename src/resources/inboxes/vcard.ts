/** The longest line (RFC 2426 §2.6), without its line end. */
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

/** The name of the card's file, which every system takes. */
export function cardFileName(label: string): string {
  const name = label
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\u202A-\u202E\u2066-\u2069/\\:*?"<>|]+/gu, " ")
    .replace(/^[\s.]+/, "")
    .trimEnd();
  return `${name === "" ? "inbox" : name}.vcf`;
}

/** A text as a value (RFC 2426 §5, text-value), in which control characters cannot stand. */
function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\P{Cc}\n]+/gu, " ")
    .replaceAll(/[\\,;]/g, String.raw`\$&`)
    .replaceAll("\n", String.raw`\n`);
}

/** Folds a long line (RFC 2426 §2.6), but not within a character: many programs would read that as two broken ones. */
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
