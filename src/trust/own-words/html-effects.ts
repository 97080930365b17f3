import { type Declarations, MAX_VALUE_CHARS, type Property } from "./html-rules.ts";
import { lengthsIn } from "./html-style.ts";

const NOTHING = /^(?:none|normal|auto|visible|initial|inherit|unset|revert|revert-layer)$/;
/** By lengths of two digits, or by half of one's own size. */
const MOVED =
  /^(?:translate(?:x|y|z|3d)?\((?:-?(?:\d{1,2}(?:\.\d{1,9})?(?:px)?|[1-5]?\d(?:\.\d{1,9})?%)(?:, ?(?!\))|(?=\)))){1,3}\)|rotate\(-?\d{1,2}deg\))$/;
/**
 * What else than nothing may be declared of what moves, cuts, covers or changes words, so that they are seen all the same.
 * Mail programs declare none of this: it comes along with words from a page, and what else there is of it is not worth
 * knowing.
 */
const HARMLESS: [Property, RegExp | null][] = [
  ["-webkit-filter", null],
  ["-webkit-mask", null],
  ["-webkit-mask-image", null],
  ["-webkit-text-security", null],
  ["-webkit-transform", MOVED],
  ["animation", null],
  ["animation-name", null],
  ["clip", /^rect\((?:auto,? ?){4}\)$/],
  ["clip-path", /^(?:inset\(0(?:px|%)?\)|(?:border|padding|content|margin)-box)$/],
  ["content-visibility", null],
  ["filter", null],
  ["mask", null],
  ["mask-image", null],
  ["mix-blend-mode", null],
  ["opacity", /^(?:1(?:\.0{1,9})?|0?\.(?:1[6-9]|[2-9])\d{0,9}|(?:1[6-9]|[2-9]\d|100)(?:\.\d{1,9})?%)$/],
  ["scale", /^(?:[1-9]|0?\.[3-9]|[3-9]\d%|\d{3}%)$/],
  ["transform", MOVED],
  ["translate", /^(?:-?\d{1,2}(?:\.\d{1,9})?(?:px)?(?: |$)){1,3}$/],
  ["unicode-bidi", /^(?:embed|isolate|plaintext)$/],
  ["zoom", /^(?:[1-9](?:\.\d{1,9})?|0?\.[3-9]\d{0,9}|(?:[3-9]\d|[1-9]\d{2})(?:\.\d{1,9})?%)$/],
];

/** A longer length pushes words out of what is seen. */
const FAR_OUTSIDE_PX = 500;
const PUSHES = [
  "bottom",
  "inset",
  "inset-inline-end",
  "padding",
  "padding-left",
  "right",
  "text-indent",
] as const;
/** Letters or words that are pushed together by more than this lie above each other. */
const CLOSEST_PX = -4;
const SPACINGS = ["letter-spacing", "word-spacing"] as const;
const LINES = ["text-decoration", "text-decoration-line"] as const;

/**
 * Whether a style changes words so that they may not be seen as they are, or are struck out. Of a page that is only to be
 * read they are read all the same.
 */
export function isAltered(style: Declarations): boolean {
  if (style.size === 0) return false;
  const lengths = (property: Property): number[] => lengthsIn(style.get(property) ?? "");
  return (
    PUSHES.some((property) => lengths(property).some((length) => length >= FAR_OUTSIDE_PX)) ||
    SPACINGS.some((property) => lengths(property).some((length) => length <= CLOSEST_PX)) ||
    LINES.some((property) => style.get(property)?.includes("line-through")) ||
    HARMLESS.some(([property, harmless]) => hasEffect(style.get(property) ?? "", harmless))
  );
}

function hasEffect(value: string, harmless: RegExp | null): boolean {
  if (value === "" || NOTHING.test(value)) return false;
  // The rest of a long value is not known.
  return value.length >= MAX_VALUE_CHARS || harmless?.test(value) !== true;
}
