import type { HtmlElement } from "./html-style.ts";

const MAX_SHEET_CHARS = 256 * 1024;
const MAX_STYLE_CHARS = 8 * 1024;
const MAX_CLASSES = 50;
/** A value is examined for each element it applies to; only pictures, paths and long lists are longer. */
export const MAX_VALUE_CHARS = 100;
/** Clip paths and transformations that leave nothing visible. */
export const CLIPS_ALL = /inset\((50|100)%|circle\(0/;
export const SCALES_AWAY = /scale\( ?0 ?[,)]/;

/** The properties that are read; others would be copied to each element for nothing. */
const PROPERTIES = [
  "-webkit-filter",
  "-webkit-mask",
  "-webkit-mask-image",
  "-webkit-text-fill-color",
  "-webkit-text-security",
  "-webkit-transform",
  "-webkit-user-modify",
  "animation",
  "animation-name",
  "background",
  "background-color",
  "block-size",
  "border-inline-start",
  "border-inline-start-style",
  "border-left",
  "border-left-style",
  "border-right",
  "border-right-style",
  "border-style",
  "border-top",
  "border-top-style",
  "border-width",
  "bottom",
  "clip",
  "clip-path",
  "color",
  "content-visibility",
  "display",
  "filter",
  "font",
  "font-size",
  "height",
  "inline-size",
  "inset",
  "inset-block-start",
  "inset-inline-end",
  "inset-inline-start",
  "left",
  "letter-spacing",
  "line-height",
  "margin",
  "margin-block-start",
  "margin-inline-start",
  "margin-left",
  "margin-top",
  "mask",
  "mask-image",
  "max-block-size",
  "max-height",
  "max-inline-size",
  "max-width",
  "mix-blend-mode",
  "mso-hide",
  "opacity",
  "overflow",
  "overflow-x",
  "overflow-y",
  "padding",
  "padding-left",
  "right",
  "rotate",
  "scale",
  "text-decoration",
  "text-decoration-line",
  "text-indent",
  "top",
  "transform",
  "translate",
  "unicode-bidi",
  "user-modify",
  "visibility",
  "white-space",
  "width",
  "word-spacing",
  "zoom",
] as const;
export type Property = (typeof PROPERTIES)[number];
const IS_READ = new Set<string>(PROPERTIES);

export type Declarations = Map<Property, string>;

/**
 * Returns the style of an element: rules of the style sheet, its presentational attributes, then its own style; later
 * ones win.
 */
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
  const color = attributes["color"] ?? (name === "body" ? attributes["text"] : undefined);
  if (color !== undefined) put(style, "color", color);
  if (attributes["style"] !== undefined) merge(style, declarations(attributes["style"]));
  for (const [property, value] of style) {
    if (value.endsWith(IMPORTANT)) style.set(property, value.slice(0, -IMPORTANT.length));
  }
  return style;
}

/** Adds the rules of a style sheet by the last part of each simple selector. Ignores media queries. */
export function readSheet(css: string, sheet: Map<string, Declarations>): void {
  let depth = 0;
  let selector = "";
  let style: Declarations = new Map();
  // Called once for each rule, however many nested blocks it has.
  const endRule = (): void => {
    if (style.size > 0) addRule(sheet, selector, style);
    style = new Map();
  };
  for (const piece of withoutComments(css.slice(0, MAX_SHEET_CHARS)).split(/(?=[{}])/)) {
    const text = piece.replace(/^[{}]/, "");
    if (piece.startsWith("{")) depth += 1;
    if (piece.startsWith("}")) depth = Math.max(0, depth - 1);
    if (depth === 0) {
      endRule();
      selector = text;
    } else if (depth === 1) merge(style, declarations(text));
  }
  endRule();
}

function addRule(sheet: Map<string, Declarations>, selectors: string, style: Declarations): void {
  if (selectors.includes("@")) return;
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

/** Suffix of `!important` values, which later plain ones do not replace. */
const IMPORTANT = "!";

function put(into: Declarations, property: Property, value: string): void {
  if (into.get(property)?.endsWith(IMPORTANT) && !value.endsWith(IMPORTANT)) return;
  into.set(property, value);
}

function declarations(text: string): Declarations {
  const found: Declarations = new Map();
  for (const one of withoutComments(text.slice(0, MAX_STYLE_CHARS)).toLowerCase().split(";")) {
    const colon = one.indexOf(":");
    const property = unescaped(one.slice(0, Math.max(0, colon))).trim();
    if (!isProperty(property)) continue;
    const [value = "", mark] = unescaped(one.slice(colon + 1)).split("!", 2);
    put(found, property, shortened(value) + (mark?.trim() === "important" ? IMPORTANT : ""));
  }
  return found;
}

/** Returns a text without its escapes (CSS Syntax 3 §4.3.7): `n\6fne` is `none`. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text
    .replaceAll(/\\([0-9a-f]{1,6})\s?/g, (_, code: string) => {
      const point = Number.parseInt(code, 16);
      return point > MAX_CODE_POINT ? "\ufffd" : String.fromCodePoint(point);
    })
    .replaceAll("\\", "")
    .toLowerCase();
}

const MAX_CODE_POINT = 0x10_ff_ff;

function isProperty(name: string): name is Property {
  return IS_READ.has(name);
}

/** Shortens a long value to the function in it that hides content, if any: it may follow harmless ones. */
function shortened(value: string): string {
  const plain = value.trim().replace(/\s+/g, " ");
  if (plain.length <= MAX_VALUE_CHARS) return plain;
  const [hiding] = CLIPS_ALL.exec(plain) ?? SCALES_AWAY.exec(plain) ?? [plain];
  return hiding.slice(0, MAX_VALUE_CHARS);
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
