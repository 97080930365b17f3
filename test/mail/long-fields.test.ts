import { expect, test } from "bun:test";
import { authenticateSender } from "../../src/mail/reading/authenticate.ts";
import { readHeaders } from "../../src/mail/reading/headers.ts";
import { ownMs } from "../support/own-time.ts";

const SIGNATURE =
  "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=evil.example; s=s1; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA";
const blanks = (count: number): string => `a${" ".repeat(count)}b=1`;

test.each<[string, string[]]>([
  ["one field of ARC with a long run of blanks", [`ARC-Seal: i=1; ${blanks(60_000)}`]],
  ["as many as a header has room for", Array(15).fill(`ARC-Message-Signature: i=1; ${blanks(3_900)}`)],
  ["a signature with a long run of blanks", [`DKIM-Signature: v=1; c=relaxed/simple; ${blanks(60_000)}`]],
  ["a signature of many dots", [`DKIM-Signature: v=1; a=rsa-sha256; s=x; d=${".".repeat(60_000)}a; h=from`]],
])("%s holds no thread for seconds", async (_what, fields) => {
  const raw = Buffer.from(
    [
      "From: eve@evil.example",
      "Date: Fri, 3 May 2024 10:00:00 +0000",
      ...fields,
      SIGNATURE,
      "",
      "Hello.",
      "",
    ].join("\r\n"),
  );
  const began = ownMs();
  const { authenticated } = await authenticateSender({
    raw,
    headers: readHeaders(raw),
    from: { address: "eve@evil.example" },
    remote_address: "192.0.2.1",
    helo: "evil.example",
    mail_from: "eve@evil.example",
    hostname: "mx.mw.test",
    resolver: () => Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" })),
  });
  expect(authenticated).toBe(false);
  expect(ownMs() - began).toBeLessThan(3_000);
});
