/** Two colours closer than this (of 255, on every channel) cannot be told apart by a reader. */
const SAME_COLOR_WITHIN = 20;
const COLOR_NAMES: Record<string, string> = {
  white: "ffffff",
  // System colours as a page in the light has them.
  canvas: "ffffff",
  field: "ffffff",
  window: "ffffff",
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
const FUNCTION = /^([a-z-]{1,10})\(([^()]{0,100})/;
const NUMBER = /^([+-]?\d{0,6}\.?\d{1,20})(%|deg)?$/;
/** Alpha below which a colour counts as transparent. */
const LEAST_ALPHA = 0.15;

/** The largest value of a channel. */
const MOST = 255;

type Rgb = readonly [number, number, number];
export type Color = Rgb | "transparent" | "unknown";

export const WHITE: Color = [255, 255, 255];

export function areAlike(color: Color, background: Color): boolean {
  if (color === "transparent") return true;
  if (typeof color === "string" || typeof background === "string") return false;
  return color.every((channel, index) => Math.abs(channel - (background[index] ?? 0)) <= SAME_COLOR_WITHIN);
}

export function readColor(value: string): Color {
  const text = value.trim().toLowerCase();
  if (text === "transparent") return "transparent";
  // Undefined variables have the fallback value behind the comma.
  if (text.startsWith("var(")) return text.includes(",") ? readColor(behindComma(text)) : "unknown";
  const [, name, words] = FUNCTION.exec(text) ?? [];
  return name !== undefined && words !== undefined ? colorOf(name, words) : hexColor(text);
}

function hexColor(text: string): Color {
  const hex = COLOR_NAMES[text] ?? /^#?([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})$/.exec(text)?.[1];
  if (hex === undefined) return "unknown";
  const digits = hex.length < 6 ? hex.replace(/./g, "$&$&") : hex;
  if (digits.length > 6 && Number.parseInt(digits.slice(6), 16) <= LEAST_ALPHA * MOST) return "transparent";
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)) as unknown as Rgb;
}

function behindComma(text: string): string {
  return text.slice(text.indexOf(",") + 1).replace(/\)$/, "");
}

/**
 * Computes the lightness of a colour, 0 to 1, from a function's arguments; for these colour functions that is enough.
 */
const LIGHTNESS: Record<string, (numbers: number[]) => number> = {
  hsl: ([, saturation = 0, lightness = 0]) => lightest(saturation, lightness),
  hsla: ([, saturation = 0, lightness = 0]) => lightest(saturation, lightness),
  hwb: ([, white = 0]) => white,
  lab: ([lightness = 0]) => (lightness > 1 ? lightness / 100 : lightness),
  lch: ([lightness = 0]) => (lightness > 1 ? lightness / 100 : lightness),
  oklab: ([lightness = 0]) => lightness,
  oklch: ([lightness = 0]) => lightness,
};

/** Returns the colour of a colour function's arguments. */
function colorOf(name: string, text: string): Color {
  const words = text.split(/[\s,/]+/).filter((word) => word !== "");
  // The first argument of `color()` is the colour space.
  const numbers = words.slice(name === "color" ? 1 : 0).map(valueOf);
  if ((numbers[3] ?? 1) <= LEAST_ALPHA) return "transparent";
  const rgb = name === "rgb" || name === "rgba";
  if (rgb && words[0]?.endsWith("%") !== true) return channels(numbers, 1);
  if (rgb || name === "color") return channels(numbers, MOST);
  const lightness = LIGHTNESS[name]?.(numbers);
  return lightness === undefined ? "unknown" : channels([lightness, lightness, lightness], MOST);
}

function channels([red = 0, green = 0, blue = 0]: number[], times: number): Rgb {
  return [red * times, green * times, blue * times];
}

/** Returns a number; a percentage as a fraction. */
function valueOf(word: string): number {
  const [, number, unit] = NUMBER.exec(word) ?? [];
  return unit === "%" ? Number(number) / 100 : Number(number ?? 0);
}

/** Returns the lightness of a colour; with saturation, two of its channels are darker. */
function lightest(saturation: number, lightness: number): number {
  return lightness > 0.5 ? lightness - saturation * (1 - lightness) : lightness;
}
