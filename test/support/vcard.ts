const MAX_LINE_OCTETS = 75;

/** Reads one card by the letter of RFC 2426 and throws on anything else: each property with its parts, unescaped. */
export function readVcard(bytes: Uint8Array): Map<string, string[]> {
  const lines = unfold(bytes);
  if (lines[0] !== "BEGIN:VCARD" || lines.at(-1) !== "END:VCARD") throw new Error("It is not one whole card");
  const properties = lines.slice(1, -1).map(propertyOf);
  const card = new Map(properties);
  if (card.size < properties.length) throw new Error("A property is there twice");
  for (const name of ["VERSION", "N", "FN"]) if (!card.has(name)) throw new Error(`${name} is missing`);
  if (card.get("VERSION")?.[0] !== "3.0") throw new Error("It is of another version");
  return card;
}

function propertyOf(line: string): [name: string, parts: string[]] {
  const [, name, value] = /^([A-Z]+(?:;[A-Z]+=[A-Z]+)*):(.*)$/su.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`Not a property: ${line}`);
  return [name, partsOf(value)];
}

/** §2.6: each line on its own is UTF-8, ends with CRLF and has no more than 75 octets. */
function unfold(bytes: Uint8Array): string[] {
  const lines = Buffer.from(bytes).toString("latin1").split("\r\n");
  if (lines.pop() !== "") throw new Error("The last line does not end");
  const whole: string[] = [];
  for (const line of lines) {
    if (line.length > MAX_LINE_OCTETS || /[\r\n]/.test(line)) throw new Error(`Not one line: ${line}`);
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const text = decoder.decode(Buffer.from(line, "latin1"));
    whole.push(text.startsWith(" ") ? (whole.pop() ?? "") + text.slice(1) : text);
  }
  return whole;
}

/** §5: the components of a value, split where a semicolon is not escaped. */
function partsOf(value: string): string[] {
  const parts = [""];
  for (const [token] of value.matchAll(/\\.|[^\\]/gsu)) {
    if (token === ";") parts.push("");
    else parts.push(parts.pop() + plain(token));
  }
  return parts;
}

function plain(token: string): string {
  if (token === ",") throw new Error("A comma is not escaped");
  if (!token.startsWith("\\")) return token;
  if (!/^\\[\\,;n]$/.test(token)) throw new Error(`There is no escape ${token}`);
  return token === "\\n" ? "\n" : token.slice(1);
}
