import { afterAll, describe, expect, test } from "bun:test";
import { createMailParser, type ParsedMail } from "../../src/mail/reading/parse.ts";

const parser = createMailParser();
afterAll(() => parser[Symbol.asyncDispose]());

const PICTURE =
  'Content-Type: image/jpeg; name="a.jpg"\r\nContent-Disposition: inline; filename=a.jpg\r\n\r\nJPEG';
const text = (words: string, type = "text/plain"): string =>
  `Content-Type: ${type}; charset=utf-8\r\n\r\n${words}`;
const page = (words: string): string => text(`<html><body>${words}</body></html>`, "text/html");

function parted(kind: string, parts: string[], boundary = "b"): string {
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("");
  return `Content-Type: multipart/${kind}; boundary=${boundary}\r\n\r\n${body}--${boundary}--\r\n`;
}

async function read(content: string): Promise<ParsedMail> {
  const raw = `From: a@x.org\r\nSubject: Pictures\r\nMIME-Version: 1.0\r\n${content}`;
  const outcome = await parser.parse(Buffer.from(raw));
  if (!outcome.ok) throw new Error(outcome.message);
  return outcome.mail;
}

describe("words above and below a picture", () => {
  test.each([
    [
      "in plain text",
      parted("mixed", [text("Compare this"), PICTURE, text("with that"), PICTURE, text("please.")]),
    ],
    [
      "in HTML",
      parted("mixed", [page("Compare this"), PICTURE, page("with that"), PICTURE, page("please.")]),
    ],
    [
      "in HTML beside the whole plain text",
      parted("alternative", [
        text("Compare this\n\nwith that\n\nplease."),
        parted("mixed", [page("Compare this"), PICTURE, page("with that"), PICTURE, page("please.")], "c"),
      ]),
    ],
  ])("are one text %s", async (_how, content) => {
    const mail = await read(content);
    expect(mail.new_text.split(/\s+/).join(" ")).toBe("Compare this with that please.");
    expect(mail).toMatchObject({ rest_text: "", in_doubt: null });
    expect(mail.attachments.length).toBe(2);
  });

  test("what is quoted above ends the sender's own words in all that follow", async () => {
    const quoted = "Mine.\n\nOn 3 May 2024 Eve <eve@x.org> wrote:\n\nHello";
    expect(await read(parted("mixed", [text(quoted), PICTURE, text("Obey me")]))).toMatchObject({
      new_text: "Mine.",
    });
    const html = "Mine.<blockquote>Hello</blockquote>";
    expect(await read(parted("mixed", [page(html), PICTURE, page("Obey me")]))).toMatchObject({
      new_text: "Mine.",
    });
    const signed = 'Mine.<div class="gmail_signature">Ann</div>';
    expect(await read(parted("mixed", [page(signed), PICTURE, page("Obey me")]))).toMatchObject({
      new_text: "Mine.",
    });
  });

  test.each([
    ["right below, as a list adds it", [text("Mine."), text("Obey me")]],
    ["of another kind", [text("Mine."), PICTURE, page("Obey me")]],
    ["with a name", [text("Mine."), PICTURE, `Content-Type: text/plain; name=a.txt\r\n\r\nObey me`]],
    [
      "behind an attached mail",
      [text("Mine."), "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nHi", text("Obey me")],
    ],
    [
      "behind parts of parts",
      [text("Mine."), parted("related", [text("Hi"), PICTURE], "d"), PICTURE, text("Obey me")],
    ],
  ])("a part %s is material", async (_which, parts) => {
    const mail = await read(parted("mixed", parts));
    expect(mail.new_text).toBe("Mine.");
    expect(mail.rest_text + mail.attachments.map(({ bytes }) => Buffer.from(bytes)).join()).toContain(
      "Obey me",
    );
  });

  test("a further part that may be the sender's own is said to be in doubt", async () => {
    expect((await read(parted("mixed", [text("Mine."), text("And this")]))).in_doubt).toBe("further_part");
  });
});
