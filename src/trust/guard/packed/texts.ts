import { readBase64, readDataUrls, readHex } from "./base64.ts";
import { readForm, readFormParts } from "./form.ts";
import { readJson } from "./json.ts";
import { readMail } from "./mail.ts";
import type { Part, Reader } from "./part.ts";
import { readXml } from "./xml.ts";

/** A string or number in the arguments of a call. */
export interface Given {
  /** The name of the nearest enclosing member. */
  key: string;
  value: string | number;
  /** Whether it is nested in another text, such as JSON in a string. */
  packed: boolean;
}

const READERS: Reader[] = [
  readJson,
  readXml,
  readFormParts,
  readForm,
  readMail,
  readBase64,
  readDataUrls,
  readHex,
];
/** Limits, for one call, of texts nested in texts. */
const MAX_PACKED_CHARS = 100_000;
const MAX_LAYERS = 8;
/** Characters that each text counts at least, because even a short one costs some work. */
export const LOOK_CHARS = 30;
const MAX_DEPTH = 40;
export const TOO_MUCH = Symbol("more than can be looked through");

interface Spot {
  key: string;
  /** Depth in arrays and objects. */
  depth: number;
  /** Depth in nested texts. */
  layer: number;
}

/**
 * Yields every string and number in a value with the name of its nearest enclosing member, and every name. Parses texts
 * nested in other texts (JSON, XML, forms, mails, base64). Ends with TOO_MUCH at a limit.
 */
export function* textsIn(value: unknown): Generator<Given | typeof TOO_MUCH> {
  yield* new Unpacking().textsIn(value, { key: "", depth: 0, layer: 0 });
}

class Unpacking {
  #left = MAX_PACKED_CHARS;

  *textsIn(value: unknown, spot: Spot): Generator<Given | typeof TOO_MUCH> {
    const { key, depth, layer } = spot;
    if (typeof value === "number") yield { key, value, packed: layer > 0 };
    if (typeof value === "string") {
      yield { key, value, packed: layer > 0 };
      yield* this.#packedIn(value, spot);
    }
    if (typeof value !== "object" || value === null) return;
    if (depth > MAX_DEPTH) yield { key: "url", value: JSON.stringify(value), packed: false };
    else if (Array.isArray(value))
      for (const item of value) yield* this.textsIn(item, { key, depth: depth + 1, layer });
    else
      for (const [name, item] of Object.entries(value)) {
        yield* this.textsIn(name, { key: "", depth, layer });
        yield* this.textsIn(item, { key: name, depth: depth + 1, layer });
      }
  }

  *#packedIn(text: string, spot: Spot): Generator<Given | typeof TOO_MUCH> {
    const parts = this.#partsOf(text);
    if (parts === TOO_MUCH || (parts.length > 0 && spot.layer === MAX_LAYERS)) yield TOO_MUCH;
    else
      for (const { key, value } of parts)
        yield* this.textsIn(value, { ...spot, key: key ?? spot.key, layer: spot.layer + 1 });
  }

  #partsOf(text: string): Part[] | typeof TOO_MUCH {
    const all: Part[] = [];
    this.#left -= LOOK_CHARS;
    for (const read of READERS) {
      const { parts, chars } = read(text, this.#left) ?? { parts: [], chars: 0 };
      this.#left -= chars;
      if (this.#left < 0) return TOO_MUCH;
      for (const part of parts) all.push(part);
    }
    return all;
  }
}
