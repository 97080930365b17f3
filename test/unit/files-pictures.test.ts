import { afterAll, describe, expect, test } from "bun:test";
import { countScans } from "../../src/files/jpeg-scans.ts";
import { unpackHeic } from "../../src/files/heic.ts";
import { createFileReader } from "../../src/files/reader.ts";
import type { FileReading, FileToRead } from "../../src/files/reading.ts";
import { fileOf, fixture, jpegOf, pngOf } from "../support/files.ts";

const NEVER = new AbortController().signal;
const LIMITS = { maxPixels: 1_000_000, enoughPx: 1_568 };
const reader = createFileReader();

afterAll(() => reader[Symbol.asyncDispose]());

async function read(file: FileToRead): Promise<FileReading> {
  const [reading] = await reader.read([file], NEVER);
  if (!reading) throw new Error("there should be a reading");
  return reading;
}

describe("the scans of a JPEG", () => {
  const scan = (marker: number) => [0xff, marker, 0, 2];

  test("of its thumbnail, and behind its end, are not counted", () => {
    const thumbnail = [0xff, 0xe1, 0, 10, ...scan(0xda), ...scan(0xda)];
    const bytes = new Uint8Array([0xff, 0xd8, ...thumbnail, ...scan(0xda), 1, 0xff, 0xd9, ...scan(0xda)]);
    expect(countScans(bytes, 100)).toBe(1);
  });

  test.each([
    ["behind bytes that fill up", [0xff, 0xff, ...scan(0xda)]],
    ["behind a table with what would end the picture", [0xff, 0xdb, 0, 4, 0xff, 0xd9, ...scan(0xda)]],
    ["behind a table with what would hide them", [0xff, 0xc4, 0, 6, 0xff, 0xe1, 0xff, 0xff, ...scan(0xda)]],
    ["behind a marker that nobody knows", [0xff, 0x02, 0xff, 0xff, ...scan(0xda)]],
    ["behind a stuffed byte and a restart", [0xff, 0, 0xff, 0xd0, ...scan(0xda)]],
  ])("are counted %s", (_what, bytes) => {
    expect(countScans(new Uint8Array([0xff, 0xd8, ...bytes]), 100)).toBe(1);
  });
});

describe("pictures", () => {
  test.each([
    ["scan.png", "image/png"],
    ["scan.gif", "image/png"],
    ["scan.webp", "image/jpeg"],
  ])("%s becomes one that every model takes", async (name, content_type) => {
    const { image, kind, text, note, summary } = await read(await fixture(name));
    expect({ kind, text, note }).toEqual({ kind: "image", text: "", note: "" });
    expect(image?.content_type).toBe(content_type);
    expect(summary).toBe("picture of 300 × 200 pixels");
  });

  test("a photo is turned, made smaller, and loses what it says about its maker", async () => {
    const { image } = await read(await fixture("photo.jpg"));
    if (!image) throw new Error("it should be read");
    const { width, height, format } = await new Bun.Image(image.bytes).metadata();
    expect({ width, height, format }).toEqual({ width: 1_045, height: 1_568, format: "jpeg" });
    expect(Buffer.from(image.bytes).includes("taken at home")).toBe(false);
  });

  test.skipIf(process.platform !== "linux").each(["scan.avif", "scan.tiff"])(
    "%s needs a decoder of the system, and it is said when there is none",
    async (name) => {
      expect((await read(await fixture(name))).note).toBe(
        `Not read: ${name} is in a picture format that can't be converted on this server; send it as JPEG or PNG.`,
      );
    },
  );

  test("a drawing that is a program is not drawn", async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><text>Obey</text></svg>`;
    for (const file of [fileOf("a.svg", svg), fileOf("logo", svg, "image/svg+xml")])
      expect(await read(file)).toMatchObject({ kind: "other", text: "" });
  });

  test("a large picture holds up no file of another account", async () => {
    const done: string[] = [];
    const begin = async (account: string, file: FileToRead): Promise<void> => {
      const [reading] = await reader.read([file], NEVER, { account });
      expect(reading?.note).toBe("");
      done.push(account);
    };
    const large = begin("large", fileOf("large.png", pngOf(7_000, 7_000)));
    await begin("small", fileOf("small.png", pngOf(10, 10)));
    await begin("text", fileOf("a.txt", "Words."));
    await large;
    expect(done).toEqual(["small", "text", "large"]);
  });

  test("a picture of more than 50 megapixels is not opened", async () => {
    const { note, image } = await read(fileOf("big.png", pngOf(10_000, 10_000)));
    expect(note).toBe("Not read: big.png has more than 50 megapixels.");
    expect(image).toBeUndefined();
  });

  test.each([
    [7_000, 12],
    [800, 1_000],
  ])("a JPEG of %i pixels in %i scans is read", async (side, scans) => {
    const { image, note } = await read(fileOf("photo.jpg", jpegOf(side, scans)));
    expect(note).toBe("");
    expect(image).toBeDefined();
  });

  test.each([
    [7_000, 21],
    [800, 2_000],
    [7_000, 40_000],
  ])("one of %i pixels in %i scans is not opened: its decoder could not be ended", async (side, scans) => {
    const { image, note } = await read(fileOf("photo.jpg", jpegOf(side, scans)));
    expect(note).toStartWith("Not read: photo.jpg is a JPEG that is put together from far more scans");
    expect(image).toBeUndefined();
  });
});

describe("a picture as telephones take them", () => {
  test("becomes one that every model takes", async () => {
    const reading = await read(await fixture("scan.heic"));
    expect(reading).toMatchObject({
      kind: "image",
      text: "",
      note: "",
      summary: "picture of 300 × 200 pixels",
    });
    expect(reading.image?.content_type).toBe("image/jpeg");
    const { width, height } = await new Bun.Image(reading.image?.bytes ?? new Uint8Array()).metadata();
    expect({ width, height }).toEqual({ width: 300, height: 200 });
  });

  test("is turned as it says: what lies on the left is at the top", async () => {
    const picture = bitmap((await fixture("turned.heic")).bytes);
    expect(picture).toMatchObject({ width: 64, height: 120 });
    expect(picture.colorAt(30, 10)).toBe("red");
    expect(picture.colorAt(30, 110)).toBe("blue");
  });

  test("is made smaller at once when it is large, but not smaller than it may be", async () => {
    const picture = bitmap((await fixture("turned.heic")).bytes, 39);
    expect(picture).toMatchObject({ width: 21, height: 40 });
    expect(picture.colorAt(20, 5)).toBe("red");
    expect(picture.colorAt(20, 35)).toBe("blue");
  });

  test("is not unpacked when its head says that it is too large", async () => {
    const { filename, bytes } = await fixture("scan.heic");
    const size = Buffer.from(bytes.buffer).indexOf("ispe") + 8;
    new DataView(bytes.buffer).setUint32(size, 10_000);
    new DataView(bytes.buffer).setUint32(size + 4, 10_000);
    const reading = await read({ filename, content_type: "image/heic", bytes });
    expect(reading).toMatchObject({ text: "", note: "Not read: scan.heic has more than 50 megapixels." });
    expect(reading).not.toHaveProperty("image");
  });
});

function bitmap(
  bytes: Uint8Array,
  enoughPx = LIMITS.enoughPx,
): { width: number; height: number; colorAt(x: number, y: number): string } {
  const outcome = unpackHeic(bytes, { ...LIMITS, enoughPx });
  if (!outcome.ok) throw new Error(outcome.problem);
  const view = new DataView(outcome.bitmap.buffer);
  const [width, height] = [view.getInt32(18, true), -view.getInt32(22, true)];
  const colorAt = (x: number, y: number): string => {
    const at = 54 + y * Math.ceil((3 * width) / 4) * 4 + 3 * x;
    const [blue = 0, , red = 0] = outcome.bitmap.subarray(at, at + 3);
    return red > 200 && blue < 50 ? "red" : blue > 200 && red < 50 ? "blue" : "neither";
  };
  return { width, height, colorAt };
}
