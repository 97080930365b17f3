import { CLIPS_ALL, type Declarations, type Property, SCALES_AWAY } from "./html-rules.ts";

/** Two colours closer than this (of 255, on every channel) cannot be told apart by a reader. */
const SAME_COLOR_WITHIN = 12;
const FAR_OUTSIDE_PX = -500;
const MOVES = ["text-indent", "left", "top", "margin-left", "margin-top"] as const;
const SIZES = ["width", "max-width", "height", "max-height"] as const;
/** Smaller letters cannot be read. Points count as pixels. */
const LEAST_SIZE_PX = 2.4;
const PAGE_SIZE_PX = 16;
const LINE = /solid|dashed|dotted|double|groove|ridge|inset|outset/;
/** Tables grow with their content whatever size they declare. */
const GROWS = new Set(["table", "tbody", "thead", "tfoot", "tr", "td", "th", "col", "colgroup", "img"]);
const COLOR_NAMES: Record<string, string> = {
  white: "ffffff",
  black: "000000",
  snow: "fffafa",
  ivory: "fffff0",
  whitesmoke: "f5f5f5",
  ghostwhite: "f8f8ff",
  red: "ff0000",
  green: "008000",
  blue: "0000ff",
  yellow: "ffff00",
  gray: "808080",
  grey: "808080",
  silver: "c0c0c0",
};

type Rgb = readonly [number, number, number];
type Color = Rgb | "transparent" | "unknown";

/** The part of an element's style that the elements inside it inherit. */
export interface Look {
  /** Not shown, and nothing inside can show itself again. */
  gone: boolean;
  /** By `visibility`: not shown, but an element inside may be. */
  unseen: boolean;
  /** The size of the letters, in pixels; an element inside may have larger ones. */
  size: number;
  color: Color;
  background: Color;
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
  background: [255, 255, 255],
  keeps_spaces: false,
};

export function isHidden(look: Look): boolean {
  return look.gone || look.unseen || look.size < LEAST_SIZE_PX || isCamouflaged(look);
}

export function lookOf(element: HtmlElement, style: Declarations, parent: Look): Look {
  const visibility = style.get("visibility");
  const space = style.get("white-space");
  return {
    gone: parent.gone || isGone(element, style),
    unseen: visibility === undefined ? parent.unseen : /^(hidden|collapse)/.test(visibility),
    size: sizeOr(style.get("font-size") ?? style.get("font")?.split("/")[0], parent.size),
    color: colorOr(style.get("color"), parent.color),
    background: backgroundOr(style.get("background-color") ?? style.get("background"), parent.background),
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
    isSeeThrough(value("opacity")) ||
    (!GROWS.has(name) && hasNoRoom(attributes, style)) ||
    MOVES.some((property) => pixels(value(property)) <= FAR_OUTSIDE_PX) ||
    /^rect\(\s*[01](px)?[\s,]/.test(value("clip")) ||
    CLIPS_ALL.test(value("clip-path")) ||
    SCALES_AWAY.test(value("transform"))
  );
}

function isSeeThrough(opacity: string): boolean {
  return Number.parseFloat(opacity) <= (opacity.endsWith("%") ? 5 : 0.05);
}

function hasNoRoom(attributes: Record<string, string>, style: Declarations): boolean {
  const sizes = [attributes["width"], attributes["height"], ...SIZES.map((property) => style.get(property))];
  return sizes.some((size) => size !== undefined && Number.parseFloat(size) === 0);
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

/** A word such as "medium" shows letters again inside an element that hides them; "inherit" and "smaller" do not. */
function sizeOr(value: string | undefined, inherited: number): number {
  if (value === undefined || /inherit|unset|smaller|larger/.test(value)) return inherited;
  const found =
    /(?:^|\s)(\d{0,6}\.?\d{1,20})([a-z]{2,3}|%)(?=\s|$)/.exec(value) ??
    /(?:^|\s)(\d{0,6}\.?\d{1,20})()(?=\s|$)/.exec(value);
  if (found === null) return PAGE_SIZE_PX;
  const [, number, unit = ""] = found;
  if (unit === "%") return (Number(number) / 100) * inherited;
  if (unit === "em" || unit === "ex" || unit === "ch") return Number(number) * inherited;
  return Number(number) * (UNIT_PX[unit] ?? 1);
}

function isCamouflaged({ color, background }: Look): boolean {
  if (color === "transparent") return true;
  if (typeof color === "string" || typeof background === "string") return false;
  return color.every((channel, index) => Math.abs(channel - (background[index] ?? 0)) <= SAME_COLOR_WITHIN);
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

function readColor(value: string): Color {
  const text = value.trim().toLowerCase();
  if (text === "transparent") return "transparent";
  const channels = /^rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})(?:[\s,/]+([\d.]{1,8}))?/.exec(text);
  if (channels !== null) {
    if (channels[4] !== undefined && Number(channels[4]) <= 0.05) return "transparent";
    return [Number(channels[1]), Number(channels[2]), Number(channels[3])];
  }
  const hex = COLOR_NAMES[text] ?? /^#?([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})$/.exec(text)?.[1];
  if (hex === undefined) return "unknown";
  const digits = hex.length < 6 ? hex.replace(/./g, "$&$&") : hex;
  if (digits.slice(6) === "00") return "transparent";
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)) as unknown as Rgb;
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
