import { type Extract, Unreadable } from "./reading.ts";

const MAX_PIXELS = 50_000_000;
/** Larger pictures are made smaller by every provider before its model sees them. */
const MAX_SIDE_PX = 1_568;
const MAX_IMAGE_BYTES = 5 * 1_048_576;
const JPEG_QUALITY = 85;

const REASONS: Record<string, string> = {
  ERR_IMAGE_TOO_MANY_PIXELS: "has more than 50 megapixels",
  ERR_IMAGE_FORMAT_UNSUPPORTED:
    "is in a picture format that can't be converted on this server; send it as JPEG or PNG",
};

/** A picture as a model may see it: not larger than it is of use, and drawn anew, so that no metadata is left. */
export async function readImage(bytes: Uint8Array): Promise<Extract> {
  try {
    const { width, height, format } = await open(bytes).metadata();
    const sharp = format === "png" || format === "gif" ? await small(bytes).png().bytes() : undefined;
    const image =
      sharp !== undefined && sharp.byteLength <= MAX_IMAGE_BYTES
        ? { content_type: "image/png", bytes: sharp }
        : { content_type: "image/jpeg", bytes: await small(bytes).jpeg({ quality: JPEG_QUALITY }).bytes() };
    return { text: "", image, extent: `picture of ${width} × ${height} pixels` };
  } catch (error) {
    const reason = REASONS[(error as { code?: string }).code ?? ""];
    throw reason === undefined ? error : new Unreadable(reason);
  }
}

function open(bytes: Uint8Array): Bun.Image {
  return new Bun.Image(bytes, { maxPixels: MAX_PIXELS });
}

function small(bytes: Uint8Array): Bun.Image {
  return open(bytes).resize(MAX_SIDE_PX, MAX_SIDE_PX, { fit: "inside", withoutEnlargement: true });
}
