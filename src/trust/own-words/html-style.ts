import { areAlike, type Color, readColor, WHITE } from "./html-colors.ts";
import { CLIPS_ALL, type Declarations, type Property, SCALES_AWAY } from "./html-rules.ts";

const FAR_OUTSIDE_PX = -500;
const MOVES = [
  "bottom",
  "inset",
  "inset-block-start",
  "inset-inline-start",
  "left",
  "margin",
  "margin-block-start",
  "margin-inline-start",
  "margin-left",
  "margin-top",
  "right",
  "text-indent",
  "top",
] as const;
const SIZES = [
  "width",
  "max-width",
  "height",
  "max-height",
  "inline-size",
  "max-inline-size",
  "block-size",
  "max-block-size",
] as const;
/** Smallest box that can show a letter where overflow is cut off. */
const LEAST_ROOM_PX = 5;
/** Smaller letters cannot be read. Points count as pixels. */
const LEAST_SIZE_PX = 2.4;
const PAGE_SIZE_PX = 16;
const LINE = /solid|dashed|dotted|double|groove|ridge|inset|outset/;
/** Elements that grow with their content whatever size is declared. */
const GROWS = new Set(["table", "tbody", "thead", "tfoot", "tr", "td", "th", "col", "colgroup", "img"]);
/**
 * Superscripts and subscripts often have a line height of 0 in style sheets, so as not to move their line; they are
 * visible.
 */
const RAISED = new Set(["sup", "sub"]);

/** The part of an element's style that the elements inside it inherit. */
export interface Look {
  /** Not shown, and nothing inside can be. */
  gone: boolean;
  /** Not shown because of `visibility`, which an inner element may override. */
  unseen: boolean;
  /** Font size in pixels; an inner element may have a larger one. */
  size: number;
  color: Color;
  /** Colour that fills the letters in place of `color` (-webkit-text-fill-color). */
  fill: Color | null;
  background: Color;
  /** Whether lines overlap, because the line height is near 0. */
  flat: boolean;
  keeps_spaces: boolean;
}

export interface HtmlElement {
  name: string;
  attributes: Record<string, string>;
}

export const PAGE_LOOK: Look = {
  gone: false,
  unseen: false,
  size: PAGE_SIZE_PX,
  color: "unknown",
  fill: null,
  background: WHITE,
  flat: false,
  keeps_spaces: false,
};

export function isHidden(look: Look): boolean {
  const { gone, unseen, flat, size, fill, color, background } = look;
  return gone || unseen || flat || size < LEAST_SIZE_PX || areAlike(fill ?? color, background);
}

export function lookOf(element: HtmlElement, style: Declarations, parent: Look): Look {
  const visibility = style.get("visibility");
  const space = style.get("white-space");
  return {
    gone: parent.gone || isGone(element, style),
    unseen: visibility === undefined ? parent.unseen : /^(hidden|collapse)/.test(visibility),
    size: sizeOr(style.get("font-size") ?? style.get("font")?.split("/")[0], parent.size),
    color: colorOr(style.get("color"), parent.color),
    fill: fillOr(style.get("-webkit-text-fill-color"), parent.fill),
    background: backgroundOr(style.get("background-color") ?? style.get("background"), parent.background),
    flat: RAISED.has(element.name)
      ? parent.flat
      : isFlat(style.get("line-height") ?? lineHeightIn(style.get("font")), parent.flat),
    keeps_spaces:
      element.name === "pre" || (space === undefined ? parent.keeps_spaces : space.startsWith("pre")),
  };
}

/** Returns whether an element has a border on this side, and not a frame on all four sides. */
export function hasLine(style: Declarations, side: "top" | "right" | "left"): boolean {
  if (style.size === 0) return false;
  const names = side === "left" ? (["left", "inline-start"] as const) : ([side] as const);
  const own = names.flatMap((name) => [style.get(`border-${name}`), style.get(`border-${name}-style`)]);
  if (LINE.test(own.join(" "))) return true;
  const widths = fourSides(style.get("border-width"));
  const lines = fourSides(style.get("border-style")).map(
    (one, at) => LINE.test(one) && Number.parseFloat(widths[at] ?? "") !== 0,
  );
  return !lines.every(Boolean) && lines[["top", "right", "bottom", "left"].indexOf(side)] === true;
}

/** Returns the values for top, right, bottom and left. */
function fourSides(value = ""): string[] {
  const [top = "", right = top, bottom = top, left = right] = value.split(/\s+/, 4);
  return [top, right, bottom, left];
}

function isGone(element: HtmlElement, style: Declarations): boolean {
  const { attributes, name } = element;
  const value = (property: Property): string => style.get(property) ?? "";
  return (
    attributes["hidden"] !== undefined ||
    /^\s*true\s*$/i.test(attributes["aria-hidden"] ?? "") ||
    value("display").startsWith("none") ||
    value("mso-hide").startsWith("all") ||
    (!GROWS.has(name) && hasNoRoom(attributes, style)) ||
    isSeeThrough(value("opacity")) ||
    MOVES.some((property) => lengthsIn(value(property)).some((length) => length <= FAR_OUTSIDE_PX)) ||
    /^rect\(\s*[01](px)?[\s,]/.test(value("clip")) ||
    CLIPS_ALL.test(value("clip-path")) ||
    SCALES_AWAY.test(value("transform"))
  );
}

/** Returns the lengths in a value, in pixels. */
export function lengthsIn(value: string): number[] {
  return value === "" ? [] : value.split(" ").map(pixels);
}

function isSeeThrough(opacity: string): boolean {
  return Number.parseFloat(opacity) <= (opacity.endsWith("%") ? 5 : 0.05);
}

function hasNoRoom(attributes: Record<string, string>, style: Declarations): boolean {
  const overflow = ["overflow", "overflow-x", "overflow-y"] as const;
  const cuts = overflow.some((property) => /hidden|clip/.test(style.get(property) ?? ""));
  const sizes = SIZES.map((property) => style.get(property)).filter((size) => size !== undefined);
  const written = [attributes["width"], attributes["height"], ...sizes];
  return (
    written.some((size) => size !== undefined && Number.parseFloat(size) === 0) ||
    (cuts && sizes.some((size) => pixels(size) < LEAST_ROOM_PX))
  );
}

/** Pixels for each unit; units relative to the window or the parent are estimated by the letters or the page. */
const UNIT_PX: Record<string, number> = {
  em: PAGE_SIZE_PX,
  rem: PAGE_SIZE_PX,
  ex: PAGE_SIZE_PX / 2,
  ch: PAGE_SIZE_PX / 2,
  pc: PAGE_SIZE_PX,
  in: 96,
  cm: 38,
  mm: 3.8,
  "%": 6,
  vw: 6,
  vh: 6,
};

function pixels(length: string): number {
  const unit = /(?<![a-z%])[a-z%]+$/.exec(length.slice(-8))?.[0] ?? "";
  return Number.parseFloat(length) * (UNIT_PX[unit] ?? 1);
}

/** Returns the smallest of the sizes in a function such as min(). */
function smallestIn(value: string): number {
  const sizes = value.matchAll(/(?<![\d.a-z-])\d{0,6}\.?\d{1,20}(?:[a-z]{2,3}|%)?/g);
  return Math.min(PAGE_SIZE_PX, ...Array.from(sizes, ([size]) => pixels(size)));
}

/**
 * Returns a font size. A keyword such as "medium" makes letters visible again inside an element with tiny ones;
 * "inherit" and "smaller" do not.
 */
function sizeOr(value: string | undefined, inherited: number): number {
  if (value === undefined || /inherit|unset|smaller|larger/.test(value)) return inherited;
  if (value.includes("(")) return smallestIn(value) < LEAST_SIZE_PX ? 0 : PAGE_SIZE_PX;
  // Only to say that letters are tiny does anybody need an exponent.
  if (/\de-\d/.test(value)) return 0;
  const found =
    /(?:^|\s)(\d{0,6}\.?\d{1,20})([a-z]{2,3}|%)(?=\s|$)/.exec(value) ??
    /(?:^|\s)(\d{0,6}\.?\d{1,20})()(?=\s|$)/.exec(value);
  return found === null ? PAGE_SIZE_PX : Number(found[1]) * unitOf(found[2] ?? "", inherited);
}

/** Returns the pixels of a font-size unit, given the inherited size. */
function unitOf(unit: string, inherited: number): number {
  if (unit === "%") return inherited / 100;
  return unit === "em" || unit === "ex" || unit === "ch" ? inherited : (UNIT_PX[unit] ?? 1);
}

/** Returns the line height in a `font` value: "12px/1.5 Arial". */
function lineHeightIn(font = ""): string | undefined {
  return font.includes("/") ? font.split("/")[1]?.trim().split(" ")[0] : undefined;
}

/** Returns whether lines overlap; a line height is a length or a multiple of the font size. */
function isFlat(value: string | undefined, inherited: boolean): boolean {
  if (value === undefined || value === "inherit") return inherited;
  return pixels(/[\d.]$/.test(value) ? `${value}em` : value) < LEAST_SIZE_PX;
}

function fillOr(value: string | undefined, inherited: Color | null): Color | null {
  if (value === undefined || value === "inherit") return inherited;
  return /^(currentcolor|initial|unset)/.test(value) ? null : readColor(value);
}

function colorOr(value: string | undefined, inherited: Color): Color {
  if (value === undefined || value === "inherit" || value === "") return inherited;
  return readColor(value);
}

/** Returns the background colour: unknown for a picture or gradient, the parent's where none is declared. */
function backgroundOr(value: string | undefined, inherited: Color): Color {
  if (value === undefined || value === "" || /^(none|inherit|initial|transparent)/.test(value))
    return inherited;
  if (/url\(|gradient/.test(value)) return "unknown";
  const color = readColor(value.startsWith("rgb") ? value : (value.split(/\s+/, 1)[0] ?? ""));
  return color === "transparent" ? inherited : color;
}

/** Returns the names of an element in lower case: class, id, name and Zimbra's marker attribute. */
export function namesOf({
  class: classes = "",
  id = "",
  name = "",
  ...others
}: Record<string, string>): string {
  return `${classes.slice(0, 500)} ${id.slice(0, 200)} ${name.slice(0, 200)} ${others["data-marker"]?.slice(0, 50) ?? ""}`.toLowerCase();
}
