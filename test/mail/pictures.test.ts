import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";

import { pictureOf } from "../../src/mail/writing/pictures.ts";
import { written } from "../../src/mail/writing/written.ts";
import { plot } from "../support/plot.ts";
import { toolRoom } from "../support/tool-room.ts";

const PNG = plot([1, 2, 3]);
const GIF = Buffer.concat([Buffer.from("GIF89a"), Buffer.from([200, 0, 100, 0]), Buffer.alloc(30)]);
/** A frame header behind a segment of 16 bytes and two of filling. */
const JPEG = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]),
  Buffer.alloc(14),
  Buffer.from([0xff, 0xff, 0xff, 0xc2, 0, 11, 8, 0, 100, 1, 44, 3]),
  Buffer.alloc(20),
]);

describe("a file is shown in a mail", () => {
  test.each([
    ["PNG", "image/png", PNG, 900],
    ["GIF", "image/gif", GIF, 200],
    ["JPEG", "image/jpeg", JPEG, 300],
  ])("if it is a picture that every mail program shows: %s", (_name, content_type, bytes, width) => {
    expect(pictureOf({ filename: "a", content_type, bytes })).toEqual({
      filename: "a",
      cid: expect.stringMatching(/^[0-9a-f]{32}@mailwright$/),
      width,
    });
  });

  test.each([
    ["a picture of a kind that some do not show", "image/webp", Buffer.from("RIFF....WEBPVP8 ".padEnd(40))],
    ["text that is called a picture", "image/png", Buffer.from("x".repeat(100))],
    ["a picture of another kind than it is called", "image/png", GIF],
    ["one without pixels", "image/png", Buffer.concat([PNG.subarray(0, 16), Buffer.alloc(20)])],
    ["a beginning", "image/jpeg", JPEG.subarray(0, 28)],
    [
      "a JPEG of nothing but filling",
      "image/jpeg",
      Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(9_000, 0xff)]),
    ],
    ["nothing", "image/gif", Buffer.alloc(0)],
  ])("not if it is %s", (_name, content_type, bytes) => {
    expect(pictureOf({ filename: "a", content_type, bytes })).toBeUndefined();
  });

  test("under another name in each mail, if it is another file or has another name", () => {
    const cids = [
      { filename: "a.png", bytes: PNG },
      { filename: "b.png", bytes: PNG },
      { filename: "a.png", bytes: plot([3, 2, 1]) },
    ].map((file) => pictureOf({ ...file, content_type: "image/png" })?.cid);
    expect(new Set(cids).size).toBe(3);
  });
});

describe("where an answer names a picture that comes with it", () => {
  const pictures = ["plot.png", 'a "b".png'].map((filename) => ({
    filename,
    cid: `${filename.length}@mailwright`,
    width: 900,
  }));
  const htmlOf = (markdown: string) => written(markdown, { pictures }).html.replaceAll(/ style="[^"]*"/g, "");

  test.each(["plot.png", "./plot.png", "attachment:plot.png", "sandbox:/mnt/data/plot.png", "cid:plot.png"])(
    "that picture is shown: %s",
    (source) => {
      const html = htmlOf(`Before ![The "plot"](${source}) behind`);
      expect(html).toContain(
        'Before <img src="cid:8@mailwright" alt="The &quot;plot&quot;" width="640" /> behind',
      );
    },
  );

  test("pictures that it does not name are shown below it", () => {
    expect(htmlOf("![](plot.png)")).toBe(
      '<p><img src="cid:8@mailwright" alt="plot.png" width="640" /></p>\n<p><img src="cid:9@mailwright" alt="a &quot;b&quot;.png" width="640" /><br />\n<span class="mw-soft">a &quot;b&quot;.png</span></p>\n',
    );
    expect(written("![P](plot.png)", { pictures }).text).toBe('[image: P]\n\n[image: a "b".png]');
  });

  test.each([
    ["![x](other.png)", "<p>[x]</p>"],
    ["![x](https://evil.example/plot.png)", "<p>[x]</p>"],
    ["[the plot](plot.png)", "<p>the plot (plot.png)</p>"],
    ["[x](javascript:plot.png)", "<p>[x](javascript:plot.png)</p>"],
    ["![x](//evil.example/plot.png)", "<p>![x](//evil.example/plot.png)</p>"],
  ])("nothing else is shown, and nothing linked: %s", (markdown, expected) => {
    expect(htmlOf(markdown)).toStartWith(expected);
  });
});

test("a picture that a tool has made is shown in the mailed answer, and stays a file of it", async () => {
  const image = { type: "image", mimeType: "image/png", data: PNG.toString("base64") };
  const served = [{ name: "draw", annotations: { readOnlyHint: true }, run: () => ({ content: [image] }) }];
  const rounds = [[{ name: "calendar__draw" }], "Here it is:\n\n![Sales](image-1.png)"];
  await using room = await toolRoom(rounds, { served });
  await room.send({ text: "Draw the sales" });
  await room.drain();
  const [row] = await room.outgoing();
  const raw = Buffer.from(row?.raw ?? []);
  const mail = await simpleParser(raw, { keepCidLinks: true });
  const [file] = mail.attachments;
  expect(file).toMatchObject({ filename: "image-1.png", contentType: "image/png", related: true });
  expect(file?.content.equals(PNG)).toBe(true);
  expect(mail.html).toContain(`<img src="cid:${file?.cid}" alt="Sales" width="640"`);
  expect(mail.text).toContain("[image: Sales]");
  expect(raw.toString()).toMatch(/^Content-Type: multipart\/alternative;/m);
  expect(raw.toString()).toMatch(/^Content-Type: multipart\/related;/m);
  const [message] = await room.activity();
  expect(message.attachments).toMatchObject([{ filename: "image-1.png", direction: "out" }]);
});
