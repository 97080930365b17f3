import { composeReply } from "../../src/mail/writing/compose.ts";
import { written } from "../../src/mail/writing/written.ts";
import { textFile } from "../../src/pipeline/made-files.ts";
import { harmIn } from "./damage.ts";

/** A text as the house would mail it if it had read nothing of others, with all of it attached, as a long one has. */
export async function uncheckedMail(
  markdown: string,
  files: { filename: string; content_type: string; bytes: Uint8Array }[] = [],
): Promise<Buffer> {
  const { raw } = await composeReply({
    from: { name: "Desk", address: "desk@mw.test" },
    to: "ada@example.com",
    envelope_from: "",
    subject: "x",
    message_id: "x@mw.test",
    hop: 1,
    words: { ...written(markdown), whole: markdown },
    attachments: files.map((file) => ({ ...file, bytes: Buffer.from(file.bytes) })),
    date: new Date(0),
    kind: "reply",
  });
  return raw;
}

/** What files would do that were made as they were ordered. */
export async function harmOfFiles(files: { filename: string; text: string }[]): Promise<string[]> {
  const trust = { tainted: false, trusted_text: "", material: "" };
  const made = files
    .map((file) => textFile(file, trust))
    .flatMap((file) => ("refusal" in file ? [] : [file]));
  return harmIn(await uncheckedMail("Here you are.", made));
}
