const MAX_SHEET_CHARS = 256 * 1024;
const MAX_STYLE_CHARS = 8 * 1024;
const MAX_CLASSES = 50;
/** Two colours closer than this (of 255, on every channel) cannot be told apart by a reader. */
const SAME_COLOR_WITHIN = 12;
const FAR_OUTSIDE_PX = -500;
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

export type Declarations = Map<string, string>;
type Rgb = readonly [number, number, number];
type Color = Rgb | "transparent" | "unknown";

/** What of an element's style is handed down to the elements inside it. */
export interface Look {
  /** Not shown, and nothing inside can show itself again. */
  gone: boolean;
  /** By `visibility`: not shown, but an element inside may be. */
  unseen: boolean;
  /** Of the letters, in pixels; an element inside may have larger ones. */
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

/** The style sheet's rules for this element, its presentational attributes and its own style, the later the stronger. */
export function styleOf(element: HtmlElement, sheet: Map<string, Declarations>): Declarations {
  const { name, attributes } = element;
  const style: Declarations = new Map();
  if (sheet.size > 0) {
    const classes = (attributes["class"] ?? "").toLowerCase().split(/\s+/, MAX_CLASSES);
    const selectors = [
      name,
      ...classes.flatMap((one) => [`.${one}`, `${name}.${one}`]),
      `#${attributes["id"] ?? ""}`.toLowerCase(),
    ];
    for (const selector of selectors) merge(style, sheet.get(selector));
  }
  if (attributes["bgcolor"] !== undefined) put(style, "background-color", attributes["bgcolor"]);
  if (attributes["color"] !== undefined) put(style, "color", attributes["color"]);
  if (attributes["style"] !== undefined) merge(style, declarations(attributes["style"]));
  for (const [property, value] of style) {
    if (value.endsWith(IMPORTANT)) style.set(property, value.slice(0, -IMPORTANT.length));
  }
  return style;
}

/** Whether there is a line on this side of the element, and not a frame on all four that is drawn at once. */
export function hasLine(style: Declarations, side: "top" | "right" | "left"): boolean {
  if (style.size === 0) return false;
  const names = side === "left" ? ["left", "inline-start"] : [side];
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

/** Adds the rules of one style sheet, by the last part of each simple selector. Media queries are left out. */
export function readSheet(css: string, sheet: Map<string, Declarations>): void {
  let depth = 0;
  let selector = "";
  for (const piece of withoutComments(css.slice(0, MAX_SHEET_CHARS)).split(/(?=[{}])/)) {
    const text = piece.replace(/^[{}]/, "");
    if (piece.startsWith("{")) depth += 1;
    if (piece.startsWith("}")) depth = Math.max(0, depth - 1);
    if (depth === 0) selector = text;
    else if (depth === 1 && !selector.includes("@")) addRule(sheet, selector, declarations(text));
  }
}

function addRule(sheet: Map<string, Declarations>, selectors: string, style: Declarations): void {
  for (const selector of selectors.toLowerCase().split(",")) {
    const last = selector
      .trim()
      .split(/[\s>]+/)
      .at(-1);
    if (last === undefined || !/^(?:[\w-]+|[\w-]*[.#][\w-]+)$/.test(last)) continue;
    const known = sheet.get(last);
    if (known === undefined) sheet.set(last, new Map(style));
    else merge(known, style);
  }
}

function merge(into: Declarations, from: Declarations | undefined): void {
  for (const [property, value] of from ?? []) put(into, property, value);
}

/** Ends the values that a later plain one does not replace. */
const IMPORTANT = "!";

function put(into: Declarations, property: string, value: string): void {
  if (into.get(property)?.endsWith(IMPORTANT) && !value.endsWith(IMPORTANT)) return;
  into.set(property, value);
}

function declarations(text: string): Declarations {
  const found: Declarations = new Map();
  for (const one of withoutComments(text.slice(0, MAX_STYLE_CHARS)).toLowerCase().split(";")) {
    const colon = one.indexOf(":");
    if (colon === -1) continue;
    const [value = "", mark] = one.slice(colon + 1).split("!", 2);
    const end = mark?.trim() === "important" ? IMPORTANT : "";
    put(found, one.slice(0, colon).trim(), value.trim() + end);
  }
  return found;
}

function withoutComments(css: string): string {
  let out = "";
  let at = 0;
  for (;;) {
    const start = css.indexOf("/*", at);
    if (start === -1) return out + css.slice(at);
    out += css.slice(at, start);
    const end = css.indexOf("*/", start + 2);
    if (end === -1) return out;
    at = end + 2;
  }
}

function isGone(element: HtmlElement, style: Declarations): boolean {
  const { attributes, name } = element;
  const value = (property: string): string => style.get(property) ?? "";
  return (
    attributes["hidden"] !== undefined ||
    /^\s*true\s*$/i.test(attributes["aria-hidden"] ?? "") ||
    value("display").startsWith("none") ||
    value("mso-hide").startsWith("all") ||
    isSeeThrough(value("opacity")) ||
    (!GROWS.has(name) && hasNoRoom(attributes, style)) ||
    ["text-indent", "left", "top", "margin-left", "margin-top"].some(
      (property) => pixels(value(property)) <= FAR_OUTSIDE_PX,
    ) ||
    /^rect\(\s*[01](px)?[\s,]/.test(value("clip")) ||
    /inset\((50|100)%|circle\(0/.test(value("clip-path")) ||
    /scale\(\s*0\s*[,)]/.test(value("transform"))
  );
}

function isSeeThrough(opacity: string): boolean {
  return Number.parseFloat(opacity) <= (opacity.endsWith("%") ? 5 : 0.05);
}

function hasNoRoom(attributes: Record<string, string>, style: Declarations): boolean {
  const sizes = [
    attributes["width"],
    attributes["height"],
    ...["width", "max-width", "height", "max-height"].map((property) => style.get(property)),
  ];
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
