import { escapeHtml } from "./markdown.ts";

/** Text is written in chunks, of which the last may not fit. */
const PIECE = /[\s\S]{1,1000}/gu;

/** Collects HTML up to a limit of bytes in UTF-8, with all elements closed. */
export class HtmlRoom {
  /** Whether something did not fit; everything later is then left out. */
  full = false;
  #parts: string[] = [];
  #bytes = 0;
  /** End tags of the elements that are open, the innermost last. */
  #open: string[] = [];
  #closing_bytes = 0;
  /** The last place where the page may be cut. */
  #end = { parts: 0, bytes: 0, close: "" };
  readonly #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** Returns whether this element is open, or with "" any. */
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

  /** Opens an element; `tag` is the text between the angle brackets. */
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

  /** Marks a place where the page may be cut if later parts do not fit. */
  mayEnd(): void {
    if (this.full) return;
    const close = this.#open.toReversed().join("");
    this.#end = { parts: this.#parts.length, bytes: this.#bytes, close };
  }

  /** Returns the HTML: all of it, or what fitted, up to the last place to cut unless that drops most of it. */
  text(): string {
    if (!this.full) return this.#parts.join("");
    const { parts, bytes, close } = this.#end;
    if (bytes >= this.#bytes / 2) return this.#parts.slice(0, parts).join("") + close;
    return this.#parts.join("") + this.#open.toReversed().join("");
  }
}
