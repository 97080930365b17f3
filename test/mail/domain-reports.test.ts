import { afterEach, beforeAll, beforeEach, describe, expect, type Mock, spyOn, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";

const DMARC = `\ufeff<?xml version="1.0" encoding="UTF-8" ?>
<feedback>
  <report_metadata><org_name>google.com</org_name><report_id>1</report_id></report_metadata>
  <policy_published><domain>mw.test</domain><p>none</p></policy_published>
  ${row("192.0.2.1", 40, "pass", "fail")}
  ${row("192.0.2.2", 3, "fail", "pass")}
  ${row("203.0.113.5", 2, "fail", "fail")}
  ${row("203.0.113.6", 5, "fail", "fail")}
</feedback>`;

function row(source: string, count: number, dkim: string, spf: string): string {
  return `<record><row><source_ip>${source}</source_ip><count>${count}</count>
    <policy_evaluated><disposition>none</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row>
    <auth_results><dkim><domain>mw.test</domain><result>${dkim}</result></dkim></auth_results></record>`;
}

const TLS = JSON.stringify({
  "organization-name": "Company-X\r\nforged: line",
  policies: [
    {
      policy: { "policy-type": "sts", "policy-domain": "mw.test" },
      summary: { "total-successful-session-count": 5326, "total-failure-session-count": 303 },
      "failure-details": [
        { "result-type": "certificate-expired", "failed-session-count": 100 },
        { "result-type": "starttls-not-supported", "failed-session-count": 200 },
        { "result-type": "validation-failure", "failed-session-count": 3 },
      ],
    },
  ],
});

const SAYS_DMARC = {
  report: "dmarc",
  by: "google.com",
  domain: "mw.test",
  total: 50,
  failed: 7,
  mostly: "203.0.113.6",
};
const SAYS_TLS = {
  report: "tls",
  by: "Company-X forged: line",
  domain: "mw.test",
  total: 5629,
  failed: 303,
  mostly: "starttls-not-supported",
};

let room: Mailroom;
let info: Mock<Mailroom["app"]["log"]["info"]>;
let zipped: Buffer;

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-zip-"));
  await writeFile(join(dir, "report.xml"), DMARC);
  const script = "import zipfile; zipfile.ZipFile('r.zip', 'w', zipfile.ZIP_DEFLATED).write('report.xml')";
  Bun.spawnSync(["python3", "-c", script], { cwd: dir });
  zipped = await readFile(join(dir, "r.zip"));
  await rm(dir, { recursive: true });
});

beforeEach(async () => {
  room = await mailroom();
  info = spyOn(room.app.log, "info");
});
afterEach(() => room[Symbol.asyncDispose]());

/** A mail whose body is the file alone. */
function single(
  type: string,
  bytes: Buffer,
  subject = "Report Domain: mw.test Submitter: google.com",
): Buffer {
  const head = ["From: noreply-dmarc@google.com", "To: postmaster@mw.test", `Subject: ${subject}`];
  head.push(`Content-Type: ${type}; name="r"`, "Content-Disposition: attachment; filename=r");
  head.push("Content-Transfer-Encoding: base64", "MIME-Version: 1.0", "");
  return Buffer.from([...head, bytes.toString("base64").replaceAll(/.{76}/g, "$&\r\n"), ""].join("\r\n"));
}

/** RFC 8460 §5.3. */
function tlsReport(bytes: Buffer, type = "application/tlsrpt+gzip"): Buffer {
  return Buffer.from(
    [
      "From: tlsrpt@mail.sender.example",
      "To: postmaster@mw.test",
      "Subject: Report Domain: mw.test Submitter: sender.example Report-ID: <735ff>",
      "TLS-Report-Domain: mw.test",
      "TLS-Report-Submitter: sender.example",
      "MIME-Version: 1.0",
      'Content-Type: multipart/report; report-type="tlsrpt"; boundary="b"',
      "",
      "--b",
      "Content-Type: text/plain",
      "",
      "This is an aggregate TLS report.",
      "--b",
      `Content-Type: ${type}`,
      "Content-Transfer-Encoding: base64",
      'Content-Disposition: attachment; filename="r.json.gz"',
      "",
      bytes.toString("base64"),
      "--b--",
      "",
    ].join("\r\n"),
  );
}

function textFile(filename: string, content_type: string, content: string | Buffer) {
  return { filename, content_type, content };
}

const logged = () => info.mock.calls.map(([fields]) => fields as Record<string, unknown>);
const take = (raw: Buffer, to = "postmaster@mw.test", from = "noreply@google.com") =>
  deliver(room.door, { from, to, raw });

describe("a report about a domain of ours", () => {
  const reports: [string, () => Buffer, object][] = [
    ["DMARC, packed by gzip", () => single("application/gzip", gzipSync(DMARC)), SAYS_DMARC],
    ["DMARC, in an archive", () => single("application/zip", zipped), SAYS_DMARC],
    [
      "DMARC, in an archive of which nobody says that it is one",
      () => single("application/octet-stream", zipped),
      SAYS_DMARC,
    ],
    ["DMARC, as it is", () => single("text/xml", Buffer.from(DMARC)), SAYS_DMARC],
    [
      "DMARC, beside some words",
      () =>
        rawMail({
          from: "dmarc@yahoo.example",
          to: "abuse@mw.test",
          subject: "[Preview] Report Domain: mw.test",
          text: "This is a report.",
          attachments: [{ filename: "r.xml.gz", content_type: "application/gzip", content: gzipSync(DMARC) }],
        }),
      SAYS_DMARC,
    ],
    ["TLS, packed", () => tlsReport(gzipSync(TLS)), SAYS_TLS],
    ["TLS, as it is", () => tlsReport(Buffer.from(TLS), "application/tlsrpt+json"), SAYS_TLS],
  ];
  test.each(reports)("(%s) is taken, logged in one line, and reaches nobody", async (_, raw, says) => {
    expect(await take(raw())).toStartWith("250");
    expect(logged().filter((fields) => "report" in fields)).toEqual([says as Record<string, unknown>]);
    expect(await room.outgoing()).toEqual([]);
    expect(await room.activity()).toEqual([]);
  });

  test("is taken with the null sender too", async () => {
    expect(await take(tlsReport(gzipSync(TLS)), "postmaster@mw.test", "")).toStartWith("250");
    expect(logged().filter((fields) => "report" in fields)).toEqual([SAYS_TLS]);
  });

  test("is no work for an inbox", async () => {
    expect(await take(tlsReport(gzipSync(TLS)), room.inbox.address)).toStartWith("250");
    expect((await room.activity())[0]).toMatchObject({ status: "rejected", reason: "bounce" });
    await room.drain();
    expect(room.model.requests).toEqual([]);
  });

  const broken: [string, Buffer][] = [
    ["not packed as it says", Buffer.from("nonsense")],
    ["cut off", gzipSync(TLS).subarray(0, 60)],
    ["not JSON", gzipSync("{ not json")],
    ["deeply nested", gzipSync(`{"a":${"[".repeat(100_000)}`)],
    [
      "of other kinds than it should be",
      gzipSync('{"policies":[1,null,{"summary":[],"failure-details":{"a":1}}]}'),
    ],
    ["a bomb", gzipSync(Buffer.alloc(50_000_000, " "))],
  ];
  test.each(broken)("that is %s is taken all the same", async (_, bytes) => {
    expect(await take(tlsReport(bytes))).toStartWith("250");
    expect(await room.outgoing()).toEqual([]);
  });

  test("is told from a person's mail under such a subject, which the administrator gets", async () => {
    const raw = rawMail({
      from: "bob@example.org",
      to: "postmaster@mw.test",
      subject: "Report Domain: is this spam?",
    });
    expect(await take(raw)).toStartWith("250");
    expect(await room.outgoing()).toHaveLength(1);
  });

  test("is not looked for in a heap of files, each of which would take time to unpack", async () => {
    const file = (content: string) => ({
      filename: "r.gz",
      content_type: "application/gzip",
      content: gzipSync(content),
    });
    const attachments = [...Array.from({ length: 10 }, () => file("nothing")), file(DMARC)];
    const subject = "Report Domain: mw.test";
    const raw = rawMail({ from: "eve@example.net", to: "postmaster@mw.test", subject, attachments });
    const before = (await room.outgoing()).length;
    expect(await take(raw)).toStartWith("250");
    expect(logged().filter((fields) => "report" in fields)).toEqual([]);
    expect(await room.outgoing()).toHaveLength(before + 1);
  });

  const elsewhere: [string, object][] = [
    ["a text that has a name", { attachments: [textFile("r.xml", "text/plain; name=r.xml", DMARC)] }],
    ["a file of another type", { attachments: [textFile("r.pdf", "application/pdf", DMARC)] }],
    [
      "an attached mail",
      {
        attachments: [
          {
            filename: "m.eml",
            content_type: "message/rfc822",
            content: single("text/xml", Buffer.from(DMARC)),
          },
        ],
      },
    ],
    [
      "a mail that is larger than any report",
      { text: `${"x".repeat(70)}\r\n`.repeat(60_000), attachments: [textFile("r.xml", "text/xml", DMARC)] },
    ],
  ];
  test.each(elsewhere)("is not looked for in %s", async (_, parts) => {
    const subject = "Report Domain: mw.test";
    const raw = rawMail({ from: "eve@example.net", to: "postmaster@mw.test", subject, ...parts });
    expect(await take(raw)).toStartWith("250");
    expect(logged().filter((fields) => "report" in fields)).toEqual([]);
    expect(await room.outgoing()).toHaveLength(1);
  });

  test("fills no log, however many of them come", async () => {
    for (let count = 0; count < 70; count++) await take(single("text/xml", Buffer.from(DMARC)));
    expect(logged().filter((fields) => "report" in fields).length).toBeLessThanOrEqual(60);
  });
});
