import { describe, expect, test } from "bun:test";
import { readHeaders } from "../../src/mail/headers.ts";
import { bounceDetails, classifyMail, machineMarks, type MailSigns } from "../../src/mail/machine-mail.ts";
import { ownMs } from "../support/own-time.ts";

const classify = (lines: string[], signs: Partial<MailSigns> = {}) => {
  const raw = `From: ann@example.com\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
  const address = { mail_from: "ann@example.com", from_address: "ann@example.com", ...signs };
  return classifyMail(machineMarks({ headers: readHeaders(Buffer.from(raw)), ...address }), {
    is_own_address: address.from_address === "work@mailwright.test",
    own_message_id: (id) => id.endsWith("@mailwright.test"),
  });
};

describe("machine mail", () => {
  test.each([
    [[]],
    [["Auto-Submitted: no"]],
    [["Auto-Submitted: NO; owner-email=x"]],
    [["Auto-Submitted: (a person) no (really)"]],
    [["Auto-Submitted:"]],
    [["X-Auto-Response-Suppress: None"]],
    [["X-Auto-Response-Suppress: DR, RN, NRN"]],
    [["X-Auto-Response-Suppress: Allow"]],
    [["Precedence: first-class"]],
    [["X-Mailwright-Hop: 4"]],
    [["Content-Type: multipart/mixed; boundary=report"]],
    [["Message-ID: <1@example.com>"]],
    [["In-Reply-To: <1@mailwright.test>", "References: <1@mailwright.test>"]],
  ])("takes %j for a person's", (lines) => {
    expect(classify(lines)).toEqual({ kind: "person" });
  });

  test.each([
    ["auto_submitted", ["Auto-Submitted: auto-generated"]],
    ["auto_submitted", ["Auto-Submitted: Auto-Notified; owner-email=x"]],
    ["auto_submitted", ["Auto-Submitted: (cron) auto-generated (nightly)"]],
    ["auto_submitted", ["Auto-Submitted: no", "Auto-Submitted: auto-generated"]],
    ["bounce", ["Content-Type: multipart/report; report-type=delivery-status"]],
    ["bounce", ["Content-Type: Multipart/Report; report-type=disposition-notification"]],
    ["own_message_id", ["Message-ID: <1.abc@mailwright.test>"]],
    ["hop_limit", ["X-Mailwright-Hop: 5"]],
    ["hop_limit", ["X-Mailwright-Hop: 1", "X-Mailwright-Hop: 17"]],
    ["hop_limit", ["X-Mailwright-Hop: 1e3"]],
    ["hop_limit", ["X-Mailwright-Hop: -1"]],
  ] as const)("never runs for %s: %j", (reason, lines) => {
    expect(classify([...lines])).toEqual({ kind: "hard", reason });
  });

  test.each([
    ["auto_reply", ["Auto-Submitted: auto-replied"]],
    ["auto_reply", ["Auto-Submitted: auto-replied; owner-email=x"]],
    ["auto_reply", ["Auto-Submitted: something-new"]],
    ["auto_reply", ["Auto-Submitted: ((nested) comment) no"]],
    ["auto_reply", ["Precedence: auto_reply"]],
    ["auto_reply", ["X-Auto-Response-Suppress: All"]],
    ["auto_reply", ["X-Auto-Response-Suppress: DR, oof"]],
    ["auto_reply", ["X-Auto-Response-Suppress: AutoReply"]],
    ["auto_reply", ["X-Autoreply: yes"]],
    ["auto_reply", ["X-Autorespond: Re: Hi"]],
    ["auto_reply", ["X-Apple-Unsubscribe: true"]],
    ["mailing_list", ["List-Id: <friends.example.com>"]],
    ["mailing_list", ["List-Unsubscribe: <mailto:leave@example.com>"]],
    ["mailing_list", ["List-Post: <mailto:friends@example.com>"]],
    ["mailing_list", ["Precedence: List"]],
    ["bulk", ["Precedence: bulk"]],
    ["bulk", ["Precedence: junk"]],
  ] as const)("sends no reply to %s: %j", (reason, lines) => {
    expect(classify([...lines])).toEqual({ kind: "soft", reason });
  });

  test("never runs for a null reverse-path or a mail system's own address", () => {
    const bounce = { kind: "hard" as const, reason: "bounce" as const };
    expect(classify([], { mail_from: "" })).toEqual(bounce);
    for (const address of ["MAILER-DAEMON@example.com", "postmaster@example.com"]) {
      expect(classify([], { from_address: address })).toEqual(bounce);
      expect(classify([], { mail_from: address })).toEqual(bounce);
    }
    expect(classify([], { from_address: "postmasters@example.com" })).toEqual({ kind: "person" });
  });

  test("never runs for a mail from one of our own addresses", () => {
    expect(classify([], { from_address: "work@mailwright.test" })).toEqual({
      kind: "hard",
      reason: "own_address",
    });
  });

  test("sends no reply to senders who say that they read none", () => {
    for (const local of [
      "noreply",
      "no-reply",
      "No_Reply",
      "no-reply+tag",
      "noreply-invoices",
      "do-not-reply",
      "donotreply",
    ]) {
      expect(classify([], { from_address: `${local}@example.com` })).toEqual({
        kind: "soft",
        reason: "no_reply_sender",
      });
    }
    for (const local of ["noreplyann", "norep", "reply", "ann.noreply"]) {
      expect(classify([], { from_address: `${local}@example.com` })).toEqual({ kind: "person" });
    }
  });

  test("lets the harder sign win", () => {
    const lines = ["List-Id: <l>", "Auto-Submitted: auto-generated", "X-Mailwright-Hop: 9"];
    expect(classify(lines, { mail_from: "" })).toMatchObject({ reason: "bounce" });
    expect(classify(lines)).toMatchObject({ reason: "auto_submitted" });
    expect(classify(["List-Id: <l>", "X-Mailwright-Hop: 9"])).toMatchObject({ reason: "hop_limit" });
    expect(classify(["List-Id: <l>", "Precedence: bulk"])).toMatchObject({ reason: "mailing_list" });
  });
});

const REPORT = [
  "From: MAILER-DAEMON@relay.test",
  "Content-Type: multipart/report; report-type=delivery-status; boundary=b1",
  "Message-ID: <report@relay.test>",
  "",
  "--b1",
  "Content-Type: text/plain",
  "",
  "Your mail could not be delivered. Message-ID: <decoy@relay.test>",
  "--b1",
  "Content-Type: message/delivery-status",
  "",
  "Reporting-MTA: dns; relay.test",
  "",
  "Final-Recipient: rfc822; Fine@example.com",
  "Action: delivered",
  "Status: 2.0.0",
  "",
  "Original-Recipient: rfc822;alias@example.com",
  "Final-Recipient: rfc822;",
  " Gone@Example.com",
  "Action: Failed",
  "Status: 5.1.1 (no such user)",
  "Diagnostic-Code: smtp; 550 5.1.1 unknown",
  "",
  "--b1",
  "Content-Type: text/rfc822-headers",
  "",
  "From: work@mailwright.test",
  "Message-ID:",
  " <0198.abcd@mailwright.test>",
  "Subject: Re: Hi",
  "",
  "--b1--",
  "",
];

describe("delivery reports", () => {
  test("say who could not be reached, why, and which mail it was", () => {
    for (const lineEnd of ["\r\n", "\n"]) {
      expect(bounceDetails(REPORT.join(lineEnd))).toEqual({
        recipient: "gone@example.com",
        status: "5.1.1",
        action: "failed",
        original_message_id: "0198.abcd@mailwright.test",
      });
    }
  });

  test("are read when they carry the whole mail", () => {
    const report = REPORT.join("\r\n").replace("text/rfc822-headers", "message/rfc822");
    expect(bounceDetails(report).original_message_id).toBe("0198.abcd@mailwright.test");
  });

  test("give nothing for a mail that is none", () => {
    expect(bounceDetails("From: a@b.test\r\nMessage-ID: <x@y>\r\n\r\nStatus: 5.0.0\r\n")).toEqual({});
    expect(bounceDetails("")).toEqual({});
  });

  test("leave out what makes no sense", () => {
    const report = [
      "Content-Type: message/delivery-status",
      "",
      "",
      "Action: 12",
      "Status: 9.9.9",
      "Final-Recipient: ;",
    ];
    expect(bounceDetails(report.join("\n"))).toEqual({});
  });

  test("are read no further than 256 KB, and at little cost", () => {
    expect(bounceDetails(`${"x\n".repeat(200_000)}${REPORT.join("\n")}`)).toEqual({});
    for (const text of ["\n ", "\n", "--\n", "a:b\n", ";", "Content-Type: message/rfc822\n", " "]) {
      const started = ownMs();
      bounceDetails(`Content-Type: message/delivery-status\n\n${text.repeat(300_000)}`);
      expect(ownMs() - started).toBeLessThan(500);
    }
  });
});
