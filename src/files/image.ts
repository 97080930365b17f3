import { type Extract, Unreadable } from "./reading.ts";
import { MB } from "../lib/sizes.ts";
import { countScans } from "./jpeg-scans.ts";

const MAX_PIXELS = 50_000_000;
/**
 * Pixels that all scans of a JPEG together go through: twenty times those of the largest picture. Cameras and programs make ten scans.
 * The system's decoder cannot be ended, and works where the whole server reads its files and looks up names.
 */
const MAX_SCANNED_PIXELS = 20 * MAX_PIXELS;
/** Longer side of a picture for a model: every provider scales larger ones down. */
const MAX_SIDE_PX = 1_568;
const MAX_IMAGE_BYTES = 5 * MB;
const JPEG_QUALITY = 85;

const TOO_LARGE = "has more than 50 megapixels";
const TOO_MANY_SCANS =
  "is a JPEG that is put together from far more scans than any program makes; save it again as an ordinary JPEG";
const UNKNOWN_FORMAT =
  "is in a picture format that can't be converted on this server; send it as JPEG or PNG";

type Drawn = NonNullable<Extract["image"]>;

/** Returns a picture for a model: scaled down, and encoded again so that no metadata is left. */
export async function readImage(bytes: Uint8Array): Promise<Extract> {
  try {
    const { width, height, format } = await open(bytes).metadata();
    if (format === "jpeg") refuseManyScans(bytes, width * height);
    const sharp = format === "png" || format === "gif" ? await drawnSharp(bytes) : undefined;
    return extractOf(width, height, sharp ?? (await drawnAsPhoto(bytes)));
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") throw new Unreadable(TOO_LARGE);
    if (code === "ERR_IMAGE_FORMAT_UNSUPPORTED") return readHeic(bytes);
    throw error;
  }
}

function refuseManyScans(bytes: Uint8Array, pixels: number): void {
  const most = Math.floor(MAX_SCANNED_PIXELS / Math.max(1, pixels));
  if (countScans(bytes, most) > most) throw new Unreadable(TOO_MANY_SCANS);
}

/** Reads HEIC, the format of many phone photos, where the system has no decoder. */
async function readHeic(bytes: Uint8Array): Promise<Extract> {
  // Every HEIF file begins with an `ftyp` box (ISO/IEC 14496-12 §4.3).
  if (Buffer.from(bytes.subarray(4, 8)).toString("latin1") !== "ftyp") throw new Unreadable(UNKNOWN_FORMAT);
  const { unpackHeic } = await import("./heic.ts");
  const picture = unpackHeic(bytes, { maxPixels: MAX_PIXELS, enoughPx: MAX_SIDE_PX });
  if (!picture.ok) throw new Unreadable(picture.problem === "too_many_pixels" ? TOO_LARGE : UNKNOWN_FORMAT);
  return extractOf(picture.width, picture.height, await drawnAsPhoto(picture.bitmap));
}

/** Returns the picture as PNG; undefined when that would be too large. */
async function drawnSharp(bytes: Uint8Array): Promise<Drawn | undefined> {
  const drawn = await small(bytes).png().bytes();
  return drawn.byteLength <= MAX_IMAGE_BYTES ? { content_type: "image/png", bytes: drawn } : undefined;
}

async function drawnAsPhoto(bytes: Uint8Array): Promise<Drawn> {
  return { content_type: "image/jpeg", bytes: await small(bytes).jpeg({ quality: JPEG_QUALITY }).bytes() };
}

function extractOf(width: number, height: number, image: Drawn): Extract {
  return { text: "", image, extent: `picture of ${width} × ${height} pixels` };
}

function open(bytes: Uint8Array): Bun.Image {
  return new Bun.Image(bytes, { maxPixels: MAX_PIXELS });
}

function small(bytes: Uint8Array): Bun.Image {
  return open(bytes).resize(MAX_SIDE_PX, MAX_SIDE_PX, { fit: "inside", withoutEnlargement: true });
}
