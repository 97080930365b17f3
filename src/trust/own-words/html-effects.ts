import { type Declarations, MAX_VALUE_CHARS, type Property } from "./html-rules.ts";
import { lengthsIn } from "./html-style.ts";

const NOTHING = /^(?:none|normal|auto|visible|initial|inherit|unset|revert|revert-layer)$/;
/** A shift by a length of two digits, or by half of the element's own size. */
const MOVED =
  /^(?:translate(?:x|y|z|3d)?\((?:-?(?:\d{1,2}(?:\.\d{1,9})?(?:px)?|[1-5]?\d(?:\.\d{1,9})?%)(?:, ?(?!\))|(?=\)))){1,3}\)|rotate\(-?\d{1,2}deg\))$/;
/**
 * Values besides none that leave words visible, for properties that move, cut, cover or change them. Mail programs
 * declare none of these: they come with text copied from a page, and any other value counts as an effect.
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
  ["rotate", /^-?\d{1,2}(?:\.\d{1,9})?deg$/],
  ["scale", /^(?:[1-9]|0?\.[3-9]|[3-9]\d%|\d{3}%)$/],
  ["transform", MOVED],
  ["translate", /^(?:-?\d{1,2}(?:\.\d{1,9})?(?:px)?(?: |$)){1,3}$/],
  ["unicode-bidi", /^(?:embed|isolate|plaintext)$/],
  ["zoom", /^(?:[1-9](?:\.\d{1,9})?|0?\.[3-9]\d{0,9}|(?:[3-9]\d|[1-9]\d{2})(?:\.\d{1,9})?%)$/],
];

/** A longer length moves words out of view. */
const FAR_OUTSIDE_PX = 500;
const PUSHES = [
  "bottom",
  "inset",
  "inset-inline-end",
  "left",
  "padding",
  "padding-left",
  "right",
  "text-indent",
  "top",
] as const;
/** With a more negative spacing, letters or words overlap. */
const CLOSEST_PX = -4;
const SPACINGS = ["letter-spacing", "word-spacing"] as const;
const LINES = ["text-decoration", "text-decoration-line"] as const;

/**
 * Returns whether a style changes words so that a reader may not see them as they are, or strikes them out. Text that
 * counts only as material is read anyway.
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
  // The rest of a long value was cut off and is unknown.
  return value.length >= MAX_VALUE_CHARS || harmless?.test(value) !== true;
}
