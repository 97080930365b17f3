import { areAlike, type Color, readColor, WHITE } from "./html-colors.ts";
import { CLIPS_ALL, type Declarations, type Property, SCALES_AWAY } from "./html-rules.ts";

const FAR_OUTSIDE_PX = -500;
const MOVES = [
  "inset",
  "inset-block-start",
  "inset-inline-start",
  "left",
  "margin",
  "margin-block-start",
  "margin-inline-start",
  "margin-left",
  "margin-top",
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
/** No letter has room in less, where what does not is cut off. */
const LEAST_ROOM_PX = 5;
/** Smaller letters cannot be read. Points count as pixels. */
const LEAST_SIZE_PX = 2.4;
const PAGE_SIZE_PX = 16;
const LINE = /solid|dashed|dotted|double|groove|ridge|inset|outset/;
/** Tables grow with their content whatever size they declare. */
const GROWS = new Set(["table", "tbody", "thead", "tfoot", "tr", "td", "th", "col", "colgroup", "img"]);
/** They have no height of their own in many a style sheet, ours too, so that they do not move their line: they are seen. */
const RAISED = new Set(["sup", "sub"]);

/** The part of an element's style that the elements inside it inherit. */
export interface Look {
  /** Not shown, and nothing inside can show itself again. */
  gone: boolean;
  /** By `visibility`: not shown, but an element inside may be. */
  unseen: boolean;
  /** The size of the letters, in pixels; an element inside may have larger ones. */
  size: number;
  color: Color;
  /** What some programs fill the letters with instead. */
  fill: Color | null;
  background: Color;
  /** Whether the lines lie above each other. */
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

/** Whether there is a line on this side of the element, and not a frame on all four that is drawn at once. */
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

/** Top, right, bottom, left. */
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

/** The lengths of a value in pixels. */
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

/** A part of the window or of the element around counts for the letters or the page it is a part of. */
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

/** The smallest of the sizes from which a function makes one. */
function smallestIn(value: string): number {
  const sizes = value.matchAll(/(?<![\d.a-z-])\d{0,6}\.?\d{1,20}(?:[a-z]{2,3}|%)?/g);
  return Math.min(PAGE_SIZE_PX, ...Array.from(sizes, ([size]) => pixels(size)));
}

/** A word such as "medium" shows letters again inside an element that hides them; "inherit" and "smaller" do not. */
function sizeOr(value: string | undefined, inherited: number): number {
  if (value === undefined || /inherit|unset|smaller|larger/.test(value)) return inherited;
  if (value.includes("(")) return smallestIn(value) < LEAST_SIZE_PX ? 0 : PAGE_SIZE_PX;
  const found =
    /(?:^|\s)(\d{0,6}\.?\d{1,20})([a-z]{2,3}|%)(?=\s|$)/.exec(value) ??
    /(?:^|\s)(\d{0,6}\.?\d{1,20})()(?=\s|$)/.exec(value);
  return found === null ? PAGE_SIZE_PX : Number(found[1]) * unitOf(found[2] ?? "", inherited);
}

/** The pixels of a unit in which the size of letters is given, inside of letters of an inherited size. */
function unitOf(unit: string, inherited: number): number {
  if (unit === "%") return inherited / 100;
  return unit === "em" || unit === "ex" || unit === "ch" ? inherited : (UNIT_PX[unit] ?? 1);
}

/** "12px/1.5 Arial" */
function lineHeightIn(font = ""): string | undefined {
  return font.includes("/") ? font.split("/")[1]?.trim().split(" ")[0] : undefined;
}

/** A line is as high as a length, or as so many letters. */
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

/** A picture or gradient behind the text makes the colour unknown; nothing behind it shows the parent's. */
function backgroundOr(value: string | undefined, inherited: Color): Color {
  if (value === undefined || value === "" || /^(none|inherit|initial|transparent)/.test(value))
    return inherited;
  if (/url\(|gradient/.test(value)) return "unknown";
  const color = readColor(value.startsWith("rgb") ? value : (value.split(/\s+/, 1)[0] ?? ""));
  return color === "transparent" ? inherited : color;
}

/** Returns the names of an element in small letters: class, id, name and the marker of Zimbra. */
export function namesOf({
  class: classes = "",
  id = "",
  name = "",
  ...others
}: Record<string, string>): string {
  return `${classes.slice(0, 500)} ${id.slice(0, 200)} ${name.slice(0, 200)} ${others["data-marker"]?.slice(0, 50) ?? ""}`.toLowerCase();
}
