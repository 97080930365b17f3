import { afterAll, beforeAll, expect, test } from "bun:test";
import { createResolver } from "../../src/net/dns.ts";
import { fromMailbox, readHeaders } from "../../src/mail/reading/headers.ts";
import { verifySignatures } from "../../src/mail/reading/signatures.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { freshId, mailroom, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";

let dns: Awaited<ReturnType<typeof startDnsServer>>;

beforeAll(async () => {
  dns = await startDnsServer({ ...signingZone("example.com"), ...signingZone("list.example") });
});

afterAll(() => dns[Symbol.asyncDispose]());

/** Signed by its author's domain, and above that by a list, whose signature is in this form. */
async function twiceSigned(form: string, to = "desk@mw.test"): Promise<Buffer> {
  const own = await signedBy(
    "example.com",
    rawMail({ from: "Ada <ada@example.com>", to, text: "Say hello.", ...freshId() }),
  );
  const [field = ""] = (await signedBy("list.example", own)).toString("latin1").split("\r\nDKIM-Signature:");
  return Buffer.concat([Buffer.from(`${field.replace("c=relaxed/relaxed", form)}\r\n`), own]);
}

test.each([
  "c=relaxed/relaxed",
  "c=/relaxed",
  "c=/",
  "c=",
  "c=foo/relaxed",
  "C=simple; c=/relaxed",
  "c=simple; c=/",
])("a good signature counts beside another domain's with %s", async (form) => {
  await using room = await mailroom({
    config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } },
  });
  expect(await room.send({ raw: await twiceSigned(form, room.inbox.address) })).toStartWith("250");
  expect((await room.newest()).state).toBe("received");
});

test("a throw of the verifier leaves the mail unsigned and is told", async () => {
  const raw = await twiceSigned("c=relaxed/relaxed");
  const headers = readHeaders(raw);
  const from = fromMailbox(headers);
  if (!from.ok) throw new Error(from.problem);
  const mail = {
    raw,
    headers,
    from,
    remote_address: "192.0.2.9",
    helo: "x",
    mail_from: "ada@example.com",
    hostname: "mx.mw.test",
    resolver: createResolver({ servers: [dns.address] }),
  };
  const { signal } = new AbortController();
  expect(await verifySignatures(mail, signal)).toMatchObject({ result: "pass", aligned: ["example.com"] });
  const body = Buffer.from(raw);
  Object.defineProperty(body, "subarray", {
    value: () => {
      throw new Error("a bug");
    },
  });
  expect(await verifySignatures({ ...mail, raw: body }, signal)).toEqual({
    result: "permerror",
    aligned: [],
    signed: [],
    undecided: [],
    verifier_fault: "a bug",
  });
});
