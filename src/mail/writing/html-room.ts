import { escapeHtml } from "./markdown.ts";

/** Text is written in pieces of so many characters, of which the last ones may find no room. */
const PIECE = /[\s\S]{1,1000}/gu;

/** HTML that ends, with all of its elements, before it has more bytes of UTF-8 than there is room for. */
export class HtmlRoom {
  /** Whether something found no room; then all that follows is left out. */
  full = false;
  #parts: string[] = [];
  #bytes = 0;
  /** End tags of the elements that are open, the innermost last. */
  #open: string[] = [];
  #closing_bytes = 0;
  /** The last place where the page may end. */
  #end = { parts: 0, bytes: 0, close: "" };
  readonly #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** Whether this element, or any for "", is open. */
  isWithin(close = ""): boolean {
    return close === "" ? this.#open.length > 0 : this.#open.includes(close);
  }

  put(part: string): void {
    const bytes = Buffer.byteLength(part);
    if (this.#bytes + bytes + this.#closing_bytes > this.#room) this.full = true;
    if (this.full) return;
    this.#parts.push(part);
    this.#bytes += bytes;
  }

  words(text: string): void {
    if (text.length <= 1_000) return this.put(escapeHtml(text));
    for (const piece of text.match(PIECE) ?? []) this.put(escapeHtml(piece));
  }

  /** `tag` is what stands between its brackets. */
  open(tag: string, close: string): void {
    this.#closing_bytes += close.length;
    this.put(`<${tag}>`);
    if (!this.full) this.#open.push(close);
  }

  /** Ends the innermost element. */
  close(): void {
    if (this.full) return;
    const close = this.#open.pop() ?? "";
    this.#closing_bytes -= close.length;
    this.put(close);
  }

  /** Notes that the page may end here, should there be no room for all that follows. */
  mayEnd(): void {
    if (this.full) return;
    const close = this.#open.toReversed().join("");
    this.#end = { parts: this.#parts.length, bytes: this.#bytes, close };
  }

  /** All of it, or what there was room for: up to where it may end, if that does not leave out most of it. */
  text(): string {
    if (!this.full) return this.#parts.join("");
    const { parts, bytes, close } = this.#end;
    if (bytes >= this.#bytes / 2) return this.#parts.slice(0, parts).join("") + close;
    return this.#parts.join("") + this.#open.toReversed().join("");
  }
}
