import { expect, test } from "bun:test";
import { readHeaders } from "../../src/mail/reading/headers.ts";
import { wasPassedOn } from "../../src/mail/reading/passed-on.ts";

function passedOn(...lines: string[]): boolean {
  const headers = readHeaders(
    Buffer.from(`${["From: ada@example.com", ...lines].join("\r\n")}\r\n\r\nHello`),
  );
  return wasPassedOn(headers, "ada@example.com");
}

test.each([
  "Delivered-To: ada@example.com",
  "X-Delivered-To: ada@example.com",
  "X-Original-To: ada@example.com",
  "Envelope-To: ada@example.com",
  "Return-Path: <eve@example.net>",
  "Resent-From: ada@example.com",
  "X-Forwarded-For: ada@example.com desk@mw.test",
  "X-Sieve-Redirected-From: ada@example.com",
  "X-MS-Exchange-Inbox-Rules-Loop: ada@example.com",
  "Authentication-Results: mx.example.com; spf=fail; dmarc=fail (p=none) header.from=example.com",
  "ARC-Authentication-Results: i=1; mx.example.com; dkim=none; dmarc=fail header.from=mail.example.com",
])("a mail was in a mailbox before, or was forged there, by %s", (field) => {
  expect(passedOn(field)).toBe(true);
});

test.each([
  "Received: from ada.local by mx.example.com for <desk@mw.test>; Thu, 15 Jan 2026 10:00:00 +0000",
  "X-Forwarded-Message-Id: <a@example.net>",
  // Exchange Online seals what it sends for the first time.
  "ARC-Authentication-Results: i=1; mx.microsoft.com 1; spf=pass; dmarc=pass action=none header.from=example.com",
  "Authentication-Results: dkim=none (message not signed) header.d=none;dmarc=none action=none header.from=example.com;",
  "Authentication-Results: mx.example.org; dmarc=fail header.from=example.net",
])("a mail is as its author's program wrote it with %s", (field) => {
  expect(passedOn(field)).toBe(false);
});
