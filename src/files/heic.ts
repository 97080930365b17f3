import startLibheif from "libheif-js/libheif/libheif.js";

const HEADER_BYTES = 54;
const INFO_BYTES = 40;
const BITS_PER_PIXEL = 24;

export type HeicOutcome =
  | { ok: true; width: number; height: number; bitmap: Uint8Array }
  | { ok: false; problem: "too_many_pixels" | "unknown_format" };

interface Pixels {
  width: number;
  height: number;
  /** Bytes from one row to the next. */
  stride: number;
  /** Red, green, blue. */
  data: Uint8Array;
}

/**
 * libheif compiled to plain JavaScript, which takes twice as long as its WebAssembly. But a thread cannot be ended
 * inside WebAssembly, so a hostile picture could occupy it for an hour.
 */
const heif = startLibheif({ print: () => {}, printErr: () => {} });
const { heif_error_Ok, heif_error_Plugin_loading_error } = heif.heif_error_code;

/**
 * Returns the main picture of a HEIF file as a bitmap, rotated as the file says. It is scaled down at once, because
 * each copy of a large one takes memory, but its longer side keeps at least `enoughPx`. Throws for a damaged file.
 */
export function unpackHeic(bytes: Uint8Array, limits: { maxPixels: number; enoughPx: number }): HeicOutcome {
  using given = new DisposableStack();
  const context = given.adopt(heif.heif_context_alloc(), (it) => heif.heif_context_free(it));
  check(heif.heif_context_read_from_memory(context, bytes));
  const handle = heif.heif_js_context_get_primary_image_handle(context);
  check(handle);
  given.defer(() => heif.heif_image_handle_release(handle));
  const width = heif.heif_image_handle_get_width(handle);
  const height = heif.heif_image_handle_get_height(handle);
  if (width * height > limits.maxPixels) return { ok: false, problem: "too_many_pixels" };
  const decoded = heif.heif_js_decode_image2(
    handle,
    heif.heif_colorspace.heif_colorspace_RGB,
    heif.heif_chroma.heif_chroma_interleaved_RGB,
  );
  if (decoded.code?.value === heif_error_Plugin_loading_error.value)
    return { ok: false, problem: "unknown_format" };
  check(decoded);
  given.defer(() => heif.heif_image_release(decoded.image));
  return { ok: true, width, height, bitmap: bitmapOf(decoded.channels[0], limits.enoughPx) };
}

/** Throws if libheif returned an error object in place of a result. */
function check(answer: { code?: { value: number }; message?: unknown }): void {
  if (answer.code && answer.code.value !== heif_error_Ok.value) throw new Error(String(answer.message));
}

/** Returns a BMP with its rows from the top; each pixel is the mean of a square of the picture. */
function bitmapOf(pixels: Pixels, enoughPx: number): Uint8Array {
  const step = Math.max(1, Math.floor(Math.max(pixels.width, pixels.height) / enoughPx));
  const width = Math.max(1, Math.floor(pixels.width / step));
  const height = Math.max(1, Math.floor(pixels.height / step));
  const rowBytes = Math.ceil((3 * width) / 4) * 4;
  const bitmap = new Uint8Array(HEADER_BYTES + rowBytes * height);
  bitmap.set(headerOf(width, height, bitmap.byteLength));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const corner = y * step * pixels.stride + 3 * x * step;
      const at = HEADER_BYTES + y * rowBytes + 3 * x;
      // BMP stores blue first.
      for (let color = 0; color < 3; color++) bitmap[at + 2 - color] = mean(pixels, corner + color, step);
    }
  }
  return bitmap;
}

function headerOf(width: number, height: number, size: number): Uint8Array {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write("BM", "latin1");
  header.writeUInt32LE(size, 2);
  header.writeUInt32LE(HEADER_BYTES, 10);
  header.writeUInt32LE(INFO_BYTES, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(-height, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(BITS_PER_PIXEL, 28);
  return header;
}

function mean({ data, stride }: Pixels, corner: number, step: number): number {
  let sum = 0;
  for (let y = 0; y < step; y++) {
    const row = corner + y * stride;
    for (let x = 0; x < step; x++) sum += data[row + 3 * x] ?? 0;
  }
  return Math.round(sum / (step * step));
}
