import { describe, expect, test } from "bun:test";
import { readBounce } from "../../src/mail/reading/plain-bounce.ts";

const ID = "0198.abcd@mailwright.test";
const ADA = "ada@example.com";
const GIVEN_BACK = [
  "Received: from mailwright.test (mailwright.test [192.0.2.5]) by mx.example.com",
  "From: Desk <desk@mailwright.test>",
  `To: ${ADA}`,
  "Subject: Re: 550 5.1.1 is a status",
  `Message-ID: <${ID}>`,
  "",
  "The answer.",
];

interface Notice {
  from?: string;
  subject?: string;
  head?: string[];
  words: string[];
  back?: string[];
}
const notice = ({
  from = "MAILER-DAEMON@mx.example.com",
  subject = "Mail",
  head = [],
  words,
  back,
}: Notice) =>
  [`From: ${from}`, `Subject: ${subject}`, ...head, "", ...words, "", ...(back ?? GIVEN_BACK)].join("\r\n");

describe("a notice in words that holds our mail", () => {
  const FAILED: [words: string, status: string | undefined][] = [
    ["host mx.example.com said: 550: unknown", undefined],
    ["This is a permanent error. The following address failed:", undefined],
    ["Your message did not reach the following recipient(s):", undefined],
    ["An error has occurred while attempting to deliver a message for the following recipients:", undefined],
    ["---The following addresses had delivery errors---", undefined],
    ["no valid recipients were found for this message", undefined],
    ["The user(s) account is disabled.", undefined],
    ["Each of the following recipients was rejected by a remote mail server. <<< 550 5.2.1 no", "5.2.1"],
    ["Delivery failed 20 attempts", undefined],
    ["It could not be d=\r\nelivered.", undefined],
  ];
  test.each(FAILED)("says that it failed: %s", (words, status) => {
    const read = readBounce(notice({ words: [words] }));
    expect([read.action, read.status, read.original_message_id]).toEqual(["failed", status, ID]);
  });

  const SUBJECTS = [
    "Undeliverable: Re: Hello",
    "Returned mail: Service unavailable",
    "failure notice",
    "Mail System Error - Returned Mail",
    "Delivery Status Notification (Failure)",
    "Delivery status notification: error",
    "Delivery Notification: Delivery has failed",
    "Mail delivery failed",
    "Mail failure - malformed recipient address",
    "mail failed, returning to sender",
    "Permanent Delivery Failure",
    "[Postmaster] Email Delivery Failure",
    "Unzustellbar: Re: Hallo",
    "=?utf-8?Q?Undeliverable=3A_Hello?=",
  ];
  test.each(SUBJECTS)("says so by its subject, whatever language it goes on in: %s", (subject) => {
    expect(readBounce(notice({ subject, words: ["次のあて先へ送信できませんでした"] }))).toMatchObject({
      action: "failed",
      original_message_id: ID,
    });
  });

  test.each([
    "Re: Mail delivery failed",
    "Hello",
    "Delivery Status Notification (Relay)",
    "Read: Returned mail",
  ])("does not say so by another subject: %s", (subject) => {
    expect(readBounce(notice({ subject, words: ["Hello."] })).action).toBeUndefined();
  });

  test("takes no status from the header of the mail that it gives back", () => {
    expect(readBounce(notice({ words: ["It could not be delivered."] })).status).toBeUndefined();
  });

  test("says what the other server said", () => {
    const words = ["x ".repeat(900), "550 5.1.1 The mailbox is full", "y ".repeat(900)];
    const { said = "" } = readBounce(notice({ words }));
    expect(said).toContain("550 5.1.1 The mailbox is full");
    expect(said.length).toBe(1_000);
  });

  test("is a delay where the server goes on trying", () => {
    for (const subject of [
      "Delayed Mail (still being retried)",
      "Warning--Could not send mail for past 8 hours",
    ])
      expect(readBounce(notice({ subject, words: ["450 4.2.0 later"] })).action).toBe("delayed");
  });

  test("is read in quoted-printable and base64", () => {
    const back = GIVEN_BACK.map((line) =>
      line.replaceAll("=", "=3D").replace("Message-ID: <", "Message-ID: <=\r\n"),
    );
    const quoted = notice({
      head: ["Content-Transfer-Encoding: quoted-printable"],
      words: ["Ihr Schreiben wurde nicht zuge=\r\nstellt =28550 5.1.1=29."],
      back,
    });
    expect(readBounce(quoted)).toMatchObject({ status: "5.1.1", original_message_id: ID });
    const whole = [`${ADA} could not be reached: 5.1.1`, "", ...GIVEN_BACK].join("\r\n");
    const words = [Buffer.from(whole).toString("base64")];
    const packed = notice({ head: ["Content-Transfer-Encoding: base64"], words, back: [] });
    expect(readBounce(packed)).toMatchObject({ status: "5.1.1", original_message_id: ID });
  });
});

describe("a notice in words without our mail", () => {
  const words = [`The following address failed: <${ADA}>: 550 5.1.1 who?`];

  test.each([
    "MAILER-DAEMON@example.net",
    '"Postmaster" <postmaster@example.net>',
    "Mail Delivery System <mds@x.test>",
    "<>",
  ])("names whom a mail system could not reach: %s", (from) => {
    const read = readBounce(notice({ from, words, back: [] }));
    expect(read).toMatchObject({ action: "failed", status: "5.1.1", named: [ADA] });
    expect(read.original_message_id).toBeUndefined();
  });

  test("is nothing from a person, who may be away", () => {
    const absent = { words: [`I am away. ${ADA} could not be reached until Monday.`], back: [] };
    expect(readBounce(notice({ from: "Ada <ada@example.com>", ...absent }))).toEqual({ in_words: true });
  });

  test("names nobody whom the mail that it gives back names", () => {
    const back = ["Received: from mailwright.test for <eve@example.net>", "To: eve@example.net", "", "Hi"];
    expect(readBounce(notice({ words, back })).named).toEqual([ADA]);
  });

  test("names so many, and takes little time over what looks like more", () => {
    const many = Array.from({ length: 500 }, (_, index) => `a${index}@example.com`).join(" ");
    expect(readBounce(notice({ words: [`550 ${many}`], back: [] })).named).toHaveLength(20);
  });
});

test("a receipt of a reader and a complaint are none, whatever they say", () => {
  for (const type of ["disposition-notification", "feedback-report"]) {
    const head = [`Content-Type: multipart/report;\r\n report-type=${type}; boundary=b`];
    expect(
      readBounce(notice({ subject: "Undeliverable", head, words: ["550 5.1.1"] })).action,
    ).toBeUndefined();
  }
});
