import { answerEach } from "../../lib/worker-says.ts";
import type { ParseOutcome } from "./parse.ts";
import { readMail } from "./parse-mail.ts";
import type { SignedForm } from "./signed-form.ts";

const SMALL_MAIL = [
  "From: ann@example.com",
  "Subject: =?iso-8859-1?Q?Gr=FC=DFe?=",
  'Content-Type: multipart/alternative; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain; charset=iso-8859-1",
  "Content-Transfer-Encoding: quoted-printable",
  "",
  "Gr=FC=DFe",
  "--b",
  "Content-Type: text/html; charset=utf-8",
  "",
  '<p>Gr&uuml;&szlig;e</p><blockquote type="cite"><a href="https://example.com/">Words</a></blockquote>',
  "--b--",
  "",
].join("\r\n");

interface Input {
  raw: Uint8Array;
  form?: SignedForm;
  ours: boolean;
}

// What is loaded and compiled only with the first mail must not count as the time of that mail.
await readMail(Buffer.from(SMALL_MAIL), { ours: false });
answerEach(async ({ raw, form, ours }: Input) => {
  const output = await readMail(raw, { form, ours });
  return { output, buffers: buffersOf(output) };
});

function buffersOf(outcome: ParseOutcome): ArrayBuffer[] {
  if (!outcome.ok) return [];
  return outcome.mail.attachments.map(({ bytes }) => bytes.buffer as ArrayBuffer);
}
