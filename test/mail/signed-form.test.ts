import { expect, test } from "bun:test";
import { readHeaders } from "../../src/mail/reading/headers.ts";
import { formVerified, signedHeader, type SignedForm } from "../../src/mail/reading/signed-form.ts";

const SIGNATURE = "v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com; s=a; h=from:subject; bh=eA==; b=eA==";

/** The form that is taken from a signature whose verifier says that it hashed `hashed`. */
function formOf(signature: string, hashed: (ours: Buffer) => Buffer): SignedForm | undefined {
  const raw = Buffer.from(
    `DKIM-Signature: ${signature}\r\nFrom: ada@example.com\r\nSubject: Hello\r\n\r\nHi\r\n`,
  );
  const headers = readHeaders(raw);
  const [field] = headers.fields;
  const named: SignedForm = {
    fields: ["from", "subject"],
    header: "relaxed",
    body: "relaxed",
    body_hash: "eA==",
  };
  const ours = signedHeader(raw, headers.fields, named);
  const canonicalizedHeader = hashed(ours).toString("base64");
  return formVerified({ raw, headers }, field, { bodyHash: "eA==", signingHeaders: { canonicalizedHeader } });
}

const behind = (ours: Buffer) => Buffer.concat([ours, Buffer.from("dkim-signature:v=1")]);

test("a mail is read in the form that its verifier hashed", () => {
  expect(formOf(SIGNATURE, behind)).toMatchObject({ fields: ["from", "subject"], body_hash: "eA==" });
});

test.each<[what: string, hashed: (ours: Buffer) => Buffer]>([
  ["another subject", (ours) => behind(Buffer.from(ours.toString().replace("Hello", "Bye")))],
  ["one field less", (ours) => behind(ours.subarray(0, ours.indexOf("subject")))],
  ["another field between", (ours) => behind(Buffer.concat([ours, Buffer.from("cc:eve@example.net\r\n")]))],
  ["nothing", () => Buffer.alloc(0)],
])("a mail is read in no form where its verifier hashed %s", (_what, hashed) => {
  expect(formOf(SIGNATURE, hashed)).toBeUndefined();
});

test.each(["l=2; ", "l=0; ", "c=odd/relaxed; "])(
  "a mail is read in no form where the signature says %p",
  (tag) => {
    expect(formOf(SIGNATURE.replace("d=", `${tag}d=`), behind)).toBeUndefined();
  },
);
