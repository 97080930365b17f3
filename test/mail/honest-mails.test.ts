import { expect, test } from "bun:test";
import { deliver } from "../support/smtp-client.ts";
import { create, toolRoom } from "../support/tool-room.ts";

const OWNER = "ada@example.com";
const ORDER = "Add milk to the shopping list.";

function part(type: string, body: string, ...fields: string[]): string {
  return [`Content-Type: ${type}`, ...fields, "", body].join("\n");
}

function multipart(type: string, parts: string[], boundary = "b"): string {
  return `Content-Type: ${type}; boundary="${boundary}"\n\n${parts.map((one) => `--${boundary}\n${one}\n`).join("")}--${boundary}--\n`;
}

const plain = (text: string): string => part("text/plain; charset=utf-8", text);
const html = (text: string): string => part("text/html; charset=utf-8", text);
const alternative = (text: string, page: string): string =>
  multipart("multipart/alternative", [plain(text), html(page)], "a");

function signed(type: string, filename: string, content: string): string {
  const file = part(
    `${type}; name="${filename}"`,
    content,
    `Content-Disposition: attachment; filename="${filename}"`,
  );
  return multipart(`multipart/signed; protocol="${type}"`, [plain(ORDER), file]);
}

/** As their programs write them. */
const MAILS: [program: string, body: string][] = [
  ["S/MIME", signed("application/pkcs7-signature", "smime.p7s", "MIAGCSqGSIb3DQEHAqCAMIACAQEx")],
  [
    "OpenPGP",
    signed(
      "application/pgp-signature",
      "OpenPGP_signature.asc",
      "-----BEGIN PGP SIGNATURE-----\n\nxxx\n-----END PGP SIGNATURE-----",
    ),
  ],
  [
    "Proton Mail",
    alternative(
      `${ORDER}\n\nSent with [Proton Mail](https://proton.me/mail/home) secure email.\n`,
      `<div>${ORDER}</div><div class="protonmail_signature_block"><div class="protonmail_signature_block-proton">Sent with <a target="_blank" href="https://proton.me/mail/home">Proton Mail</a> secure email.</div></div>`,
    ),
  ],
  [
    "GMX on a telephone",
    alternative(
      `${ORDER}\n--\nDiese Nachricht wurde von meinem Android Mobiltelefon mit GMX Mail gesendet.`,
      `<html><body>${ORDER}<br>-- <br>Diese Nachricht wurde von meinem Android Mobiltelefon mit GMX Mail gesendet.</body></html>`,
    ),
  ],
  [
    "a program with comments of its own",
    html(`<html><body>${ORDER}<!-- tmjah_g_1299s --><br>-- <!-- tmjah_g_1299e --><br>Ada</body></html>`),
  ],
  [
    "Outlook on a telephone",
    alternative(
      `${ORDER}\n\nGet Outlook for iOS<https://aka.ms/o0ukef>\n`,
      `<html><body><div dir="auto">${ORDER}</div><div id="ms-outlook-mobile-body-separator-line" dir="ltr"><br></div><div id="ms-outlook-mobile-signature" dir="ltr">Get <a href="https://aka.ms/o0ukef">Outlook for iOS</a></div></body></html>`,
    ),
  ],
  [
    "Outlook with the address of one's own site below",
    plain(
      `${ORDER}\n\nKind regards\nAda Smith\nACME GmbH\n${OWNER}<mailto:${OWNER}>\nwww.example.com<http://www.example.com>\n`,
    ),
  ],
];

test.each(MAILS)("a plain order from %s is carried out without a target", async (_program, body) => {
  await using room = await toolRoom([[create({ title: "Milk" })], "Done."]);
  const to = room.inbox.address;
  const head = [
    `From: Ada <${OWNER}>`,
    `To: ${to}`,
    "Subject: Shopping",
    "Message-ID: <1@example.com>",
    "MIME-Version: 1.0",
  ];
  const raw = `${head.join("\n")}\n${body}`.replaceAll("\n", "\r\n");
  expect(await deliver(room.door, { from: OWNER, to, raw })).toStartWith("250");
  await room.drain();
  expect(room.tools.calls.map(({ args }) => args["title"])).toEqual(["Milk"]);
});

test("the page of somebody else below an order is none of one's own", async () => {
  for (const page of ["https://www.example.com/offer", "www.example.net", "https://evil.example.com"]) {
    await using room = await toolRoom([[create({ title: "Milk" })], "Done."]);
    await room.send({ subject: "Shopping", text: `${ORDER}\n\n${page}` });
    await room.drain();
    expect(room.tools.calls).toEqual([]);
  }
});

test("a part that only says it signs a mail stays a file of it", async () => {
  await using room = await toolRoom([[create({ title: "Milk" })], "Done."]);
  const to = room.inbox.address;
  const file = part('application/pkcs7-signature; name="a.p7s"', "x", "Content-Disposition: attachment");
  for (const body of [
    multipart("multipart/mixed", [plain(ORDER), file]),
    multipart("multipart/signed", [plain(ORDER), file, file]),
  ]) {
    const raw = `From: ${OWNER}\nTo: ${to}\nSubject: x\nMIME-Version: 1.0\n${body}`.replaceAll("\n", "\r\n");
    expect(await deliver(room.door, { from: OWNER, to, raw })).toStartWith("250");
    await room.drain();
  }
  expect(room.tools.calls).toEqual([]);
});
