import { createRequire } from "node:module";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { dkimVerify } from "mailauth";
import { simpleParser } from "mailparser";
import { inSignedForm, type SignedForm } from "../../src/mail/reading/signed-form.ts";
import { authenticateSender } from "../../src/mail/reading/authenticate.ts";
import { createResolver } from "../../src/net/dns.ts";
import { fromMailbox, type MailHeaders, readHeaders } from "../../src/mail/reading/headers.ts";
import { readMail } from "../../src/mail/reading/parse-mail.ts";
import { partsOf, readStructure } from "../../src/mail/reading/parse-structure.ts";
import { readMailWords } from "../../src/inbound/mail-words.ts";
import { readingFor } from "../../src/inbound/vouched.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { hasMimeOpinion, type Leaf, mimeOpinions } from "../support/mime-opinion.ts";
import { REAL_HEADERS } from "../support/real-headers.ts";
import { mailroom, signingZone } from "../support/mailroom.ts";
import { keyZone, signAs } from "../support/sign-as.ts";

const load = createRequire(import.meta.url);
interface Row {
  key: string | null;
  line: Buffer;
}
/** The header parser of the signature check, and what it hashes of a field. */
const { parseHeaders, formatRelaxedLine } = load("mailauth/lib/tools.js") as {
  parseHeaders(block: Buffer): { parsed: Row[] };
  formatRelaxedLine(line: Buffer): Buffer;
};
/** That of the parser. */
const { Headers } = load("@zone-eu/mailsplit") as {
  Headers: new (block: Buffer) => { getList(): { key: string; line: string }[] };
};

/** What honest and hostile header sections are made of. */
const PIECES = fc.constantFrom(
  "From",
  "content-type",
  "Content-Transfer-Encoding",
  "X-Any",
  ": ",
  ":",
  " : ",
  "a@b.test",
  "text/plain",
  "; ",
  "boundary=",
  '"',
  "XX",
  "multipart/mixed",
  "base64",
  "grüße",
  "=?utf-8?q?a?=",
  "\r\n",
  "\r\n",
  "\r\n",
  "\r\n ",
  "\r\n\t",
  "\r\n \r\n",
  "\n",
  "\n ",
  " ",
  "\t",
  "\r",
  "\0",
  "\v",
  "\f",
  "\x1c",
  "\x7f",
  "\u0085",
  "\u00a0",
  "\u2002",
  "\u2028",
  "\u2029",
  "\ufeff",
);
const blocks = fc
  .array(PIECES, { maxLength: 30 })
  .chain((texts) =>
    fc
      .constantFrom("utf8", "latin1")
      .map((encoding) => Buffer.from(`X: y\r\n${texts.join("")}\r\n\r\nbody\r\n`, encoding)),
  );

/** Something in a header changed as a relay, a gateway or an attacker would; `at` says where. */
type Mutation = (text: string, at: number, piece: string) => string;
const MUTATIONS: Mutation[] = [
  (text, at, piece) => text.slice(0, at) + piece + text.slice(at),
  (text, at, piece) => text.slice(0, at) + piece + text.slice(at + piece.length),
  (text, at, piece) => text.slice(0, at) + text.slice(at + 1 + (piece.length % 9)),
  (text, at) => text.slice(0, at) + text.slice(at).replace(" ", "\r\n "),
  (text, at) => text.slice(0, at) + text.slice(at).replace(/\r\n[ \t]+/, " "),
  (text, at) => text.slice(0, at) + text.slice(at).replace(/\r\n[ \t]+/, "\r\n"),
  (text, at) => text.slice(0, at) + text.slice(at).replace("\r\n", "\n"),
  (text, at) => text.slice(0, at) + text.slice(at).replace("\r\n", "\r\n \r\n"),
  (text, at, piece) => text.slice(0, at) + text.slice(at).replace(/\r\n(?! )/, `\r\n${piece}`),
  (text, at) => text.slice(0, at) + text.slice(at).toUpperCase(),
  (text, at) => text.slice(at).replace(/^.*\r\n/, "") + text.slice(0, at),
  (text, at) => text + text.slice(at),
];
const mutations = fc.array(fc.tuple(fc.constantFrom(...MUTATIONS), fc.nat(4_000), PIECES), { maxLength: 5 });
const mutated = fc.tuple(fc.constantFrom(...REAL_HEADERS), mutations).map(([header, changes]) => {
  const text = changes.reduce((now, [mutate, at, piece]) => {
    const bytes = Buffer.from(piece).toString("latin1");
    return mutate(now, at % (now.length + 1), bytes);
  }, header);
  return Buffer.from(`${text}\r\n\r\nbody\r\n`, "latin1");
});

/** White space is what readers unfold differently, so how much of it there is, and at the ends, does not count. */
const plain = (value: string): string => value.replaceAll(/[\p{Cc}\s]+/gu, " ").trim();

/** Bytes as we read them: UTF-8, else Windows-1252. */
function decoded(binary: string): string {
  const bytes = Buffer.from(binary, "latin1");
  const utf8 = bytes.toString();
  return utf8.includes("\ufffd") ? new TextDecoder("windows-1252").decode(bytes) : utf8;
}

interface NamedValue {
  name: string;
  value: string;
}

const ofSignatureCheck = (raw: Buffer, size: number): NamedValue[] =>
  parseHeaders(raw.subarray(0, size)).parsed.map(({ key, line }) => {
    const hashed = formatRelaxedLine(line).toString("latin1");
    return { name: key ?? "", value: plain(decoded(hashed.slice(hashed.indexOf(":") + 1))) };
  });

async function ofParser(raw: Buffer): Promise<NamedValue[]> {
  const { headerLines } = await simpleParser(raw);
  // An empty section has one line, which is empty.
  return headerLines
    .filter(({ line }) => line !== "")
    .map(({ key, line }) => ({ name: key, value: plain(decoded(line.slice(line.indexOf(":") + 1))) }));
}

const ofOurs = ({ fields }: MailHeaders): NamedValue[] =>
  fields.map(({ name, value }) => ({ name, value: plain(value) }));

/** The parser takes `From :` for the line of a mailbox where it comes first; in our use it sees `content-*` alone. */
function expectedOfParser(raw: Buffer, headers: MailHeaders): NamedValue[] {
  const isMailboxLine = /^(?:from|post) /i.test(raw.toString("latin1", headers.fields[0]?.start));
  return ofOurs(headers).slice(isMailboxLine ? 1 : 0);
}

describe("a header section is the same to all who read it, or refused", () => {
  test.each([
    ["of pieces", blocks, 100],
    ["of real mails, changed in places", mutated, 200],
  ])("its names and its unfolded values, made %s", async (_, sections, least) => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(sections, async (raw) => {
        const headers = readHeaders(raw);
        if (headers.problem !== null || !headers.complete) return;
        read += 1;
        expect(ofSignatureCheck(raw, headers.body_offset)).toEqual(ofOurs(headers));
        expect(await ofParser(raw)).toEqual(expectedOfParser(raw, headers));
      }),
      { numRuns: 1_500 },
    );
    expect(read).toBeGreaterThan(least);
  });

  test.each(REAL_HEADERS.map((header) => [header.slice(0, header.indexOf("\r\n")), header]))(
    "as real mails have them, unchanged: %s",
    async (_, header) => {
      const raw = Buffer.from(`${header}\r\n\r\nbody\r\n`, "latin1");
      const headers = readHeaders(raw);
      expect(headers.problem).toBeNull();
      expect(ofSignatureCheck(raw, headers.body_offset)).toEqual(ofOurs(headers));
      expect(await ofParser(raw)).toEqual(expectedOfParser(raw, headers));
    },
  );

  test("in the session, before anything is made of it", async () => {
    await using t = await mailroom({ config: { limits: { inbound_per_sender_hour: 0 } } });
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(mutated, async (raw) => {
        const isOdd = readHeaders(raw).problem !== null;
        const answer = await t.send({ from: "Ada <ada@example.com>", raw });
        if (!isOdd) return;
        refused += 1;
        expect(answer).toStartWith("550 5.6.0 The header of the mail is malformed");
      }),
      { numRuns: 40 },
    );
    expect(refused).toBeGreaterThan(3);
    expect(t.model.requests).toBeEmpty();
  });

  test("to us and to the check of signatures, field by field", () => {
    let read = 0;
    fc.assert(
      fc.property(blocks, (raw) => {
        const headers = readHeaders(raw);
        if (headers.problem !== null) return;
        read += 1;
        const { parsed } = parseHeaders(raw.subarray(0, headers.body_offset));
        expect(parsed.map(({ key }) => key)).toEqual(headers.fields.map(({ name }) => name));
        const lines = headers.fields.map(({ start, end }) => raw.toString("latin1", start, end));
        expect(parsed.map(({ line }) => line.toString("latin1").replaceAll("\r\n", "\n"))).toEqual(
          lines.map((line) => line.replace(/\r?\n$/, "").replaceAll("\r\n", "\n")),
        );
      }),
      { numRuns: 5_000 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test("to us and to the parser, which sees none but our own", async () => {
    await fc.assert(
      fc.asyncProperty(blocks, async (raw) => {
        const { headers, root } = await readStructure(raw);
        const own = headers.fields.filter(({ name }) => name.startsWith("content-"));
        const theirs = (root as unknown as { headerLines: { key: string; line: string }[] }).headerLines;
        expect(theirs.filter(({ line }) => line !== "").map(({ key }) => key)).toEqual(
          own.map(({ name }) => name),
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test("the control: the parser alone sees fields that the check does not", () => {
    const raw = Buffer.from("X-Any: thing\r\n\xa0Content-Type: multipart/mixed\r\n\r\n", "latin1");
    expect(new Headers(raw).getList().map(({ key }) => key)).toContain("content-type");
    expect(parseHeaders(raw).parsed).toHaveLength(1);
    expect(readHeaders(raw).problem).toBe("its line 2 is neither a field nor the continuation of one");
  });

  test.each([
    ["a first line that is folded", " X: y\r\n\r\n", "its first line continues a field that is not there"],
    ["a line without a colon", "X: y\r\nnonsense\r\n\r\n", "its line 2 is neither a field nor"],
    ["a space in a name", "X: y\r\nA B: c\r\n\r\n", "its line 2 is neither a field nor"],
    ["no name", "X: y\r\n: c\r\n\r\n", "its line 2 is neither a field nor"],
    ["a letter in a name", "X: y\r\nÄ: c\r\n\r\n", "its line 2 is neither a field nor"],
    ["a NUL", "X: y\r\nA: b\0c\r\n\r\n", "its line 2 holds the control character 0x00"],
    ["an escape", "X: \x1b$B\r\n\r\n", "its line 1 holds the control character 0x1B"],
    ["a delete", "X: \x7f\r\n\r\n", "its line 1 holds the control character 0x7F"],
    ["a bare CR", "X: y\rA: b\r\n\r\n", "its line 1 holds a carriage return that ends no line"],
    ["a doubled CR", "X: y\r\r\nA: b\r\n\r\n", "its line 1 holds a carriage return that ends no line"],
  ])("%s is a problem", (_, raw, problem) => {
    expect(readHeaders(Buffer.from(raw)).problem).toStartWith(problem);
  });

  test.each([
    ["folds", "X: a\r\n b\r\n\tc\r\n\r\n"],
    ["a fold of blanks alone", "X: a\r\n \r\n b\r\n\r\n"],
    ["blanks before the colon", "X\t : a\r\n\r\n"],
    ["raw UTF-8", "Subject: grüße\u2028\r\n\r\n"],
    ["bare line feeds", "X: a\nY: b\n\n"],
    ["no value", "X:\r\nY: \r\n\r\n"],
    ["no body", "X: a"],
    ["nothing", "\r\nX"],
  ])("%s is none", (_, raw) => {
    expect(readHeaders(Buffer.from(raw)).problem).toBeNull();
  });

  test("raw Latin-1 is none", () => {
    expect(readHeaders(Buffer.from("Subject: \x93gr\xfc\xdfe\x94\r\n\r\n", "latin1")).problem).toBeNull();
  });
});

/** Headers of parts as mail programs write them, and as nobody should. */
const PART_LINES = fc.constantFrom(
  "Content-Type: text/plain",
  "Content-Type: text/plain; charset=utf-8",
  "Content-Type: text/html",
  'Content-Type: TEXT/PLAIN; charset="us-ascii"',
  "Content-Type: text/plain; name=a.txt",
  "content-type : text/plain",
  "Content-Type: (a) text/plain",
  "Content-Type: text/plain (b)",
  "Content-Type: text/plain; boundary=XX",
  "Content-Type: multipart/mixed; boundary=YY",
  'Content-Type: multipart/mixed; boundary="Y\\Y"',
  "Content-Type: multipart/mixed; boundary*0=Y; boundary*1=Y",
  "Content-Type: multipart/mixed; boundary=YY; boundary=ZZ",
  "Content-Type: multipart/mixed",
  "Content-Type: text",
  "Content-Type: \u00a0multipart/mixed; boundary=YY",
  "\u00a0Content-Type: multipart/mixed; boundary=YY",
  "Content-Type:",
  "Content-Type: text/plain;",
  'Content-Type: text/plain; charset="utf-8',
  "Content-Transfer-Encoding: BINARY ",
  "Content-Transfer-Encoding: quoted-printable",
  "Content-Transfer-Encoding: 7bit",
  "Content-Transfer-Encoding: base64;",
  "Content-Transfer-Encoding: (x) base64",
  "Content-Disposition: inline",
  'Content-Disposition: attachment; filename="a b.txt"',
  "X-Any: thing",
  "X-Any: thing\r\n folded",
  "X-Any: thing\r\n ",
  "From someone",
  "From : someone",
  "nonsense",
  " folded",
);
const BODY_LINES = fc.constantFrom(
  "aGVsbG8=",
  "Hello =41",
  "> quoted",
  "",
  "",
  "--XX",
  "--XX ",
  "--XX\t",
  "--XX--",
  "--XX-- ",
  "--XX--XX",
  "--YY",
  "--YY--",
  "--YY ",
  " --XX",
  "--",
  "-- ",
  "text",
);
const parted = fc
  .array(fc.tuple(fc.array(PART_LINES, { maxLength: 3 }), fc.array(BODY_LINES, { maxLength: 6 })), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) =>
    Buffer.from(
      [
        "From: a@x.org",
        "MIME-Version: 1.0",
        "Content-Type: multipart/mixed; boundary=XX",
        "",
        ...parts.flatMap(([head, body]) => ["--XX", ...head, "", ...body]),
        "--XX--",
        "",
      ].join("\r\n"),
    ),
  );

describe("the parts of a mail are the same to another program, or doubted", () => {
  test.skipIf(!hasMimeOpinion)("their types and their words", async () => {
    const seed = fc.sample(fc.integer(), 1)[0] ?? 0;
    const mails = fc.sample(parted, { numRuns: 1_500, seed });
    const opinions = mimeOpinions(mails);
    let certain = 0;
    for (const [index, raw] of mails.entries()) {
      const { root, files, doubt } = await readStructure(raw);
      if (doubt !== null) continue;
      certain += 1;
      const ours: Leaf[] = [
        ...[...partsOf(root)].flatMap(({ contentType, textContent }) =>
          textContent === undefined ? [] : { type: contentType || "text/plain", content: textContent },
        ),
        ...files.map(({ content_type, bytes }) => ({
          type: content_type,
          content: Buffer.from(bytes).toString("latin1"),
        })),
      ];
      const [parts, expected] = [ours, opinions[index] ?? []].map((leaves) =>
        leaves
          .map(({ type, content }) => ({ type, content: content.replaceAll(/\s+/g, "") }))
          .filter(({ content }) => content !== "")
          .map(({ type, content }) => `${type} ${content}`)
          .toSorted(),
      );
      expect({ seed, raw: raw.toString(), parts }).toEqual({ seed, raw: raw.toString(), parts: expected });
    }
    expect(certain).toBeGreaterThan(100);
  });
});

const DOMAIN = "example.com";
const INBOX = "desk@mail.test";
const TO_INBOX = (type: string[]) => [
  "From: Ada <ada@example.com>",
  `To: Desk <${INBOX}>`,
  "Subject: Some  words\r\n of mine",
  "Date: Fri, 03 May 2024 10:00:00 +0000",
  "Message-ID: <one@example.com>",
  "MIME-Version: 1.0",
  ...type,
];
const LINES = fc.constantFrom(
  "Say hello.",
  "",
  "  indented\ttext ",
  "> quoted",
  ">  quoted ",
  "On Friday, Bob <b@x.org> wrote:",
  "-- ",
  "--XX",
  "--XX ",
  "--XX--",
  "Content-Type: text/plain",
  "Content-Disposition: attachment",
  "soft \t",
  "a=20=",
  "end  of",
);
const FORMS = fc.constantFrom<string[][]>(
  ["Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 7bit"],
  ["Content-Type: text/plain; format=flowed; delsp=yes", "Content-Transfer-Encoding: 7bit"],
  ["Content-Type: text/plain", "Content-Transfer-Encoding: quoted-printable"],
  ["Content-Type: multipart/mixed; boundary=XX"],
  ['Content-Type: multipart/alternative; boundary="XX"'],
  ["Content-Type: text/html", "Content-Transfer-Encoding: 8bit"],
);
/** What relaxed and simple leave free, and what they do not; each says where by a number. */
const CHANGES: ((raw: string, at: number) => string)[] = [
  (raw, at) => replaceNth(raw, / (?! )/g, at, "  "),
  (raw, at) => replaceNth(raw, / /g, at, "\t"),
  (raw, at) => replaceNth(raw, /\r\n/g, at, " \r\n"),
  (raw, at) => replaceNth(raw, /\r\n/g, at, "\t \r\n"),
  (raw, at) => replaceNth(raw, /[ \t]+\r\n/g, at, "\r\n"),
  (raw, at) => replaceNth(raw, /\r\n/g, at, "\n"),
  (raw, at) => replaceNth(raw, /: /g, at, ":\r\n "),
  (raw, at) => replaceNth(raw, /\r\n/g, at, "\r\n\r\n"),
  (raw) => `${raw}\r\n \r\n`,
  (raw) => raw.replace(/(\r\n)+$/, ""),
  (raw) => `Content-Disposition: attachment; filename=x.txt\r\n${raw}`,
  (raw) => `Content-ID: <x@y>\r\n${raw}`,
  (raw) => `X-Any: thing\r\n${raw}`,
  (raw) => `Content-Language: en\r\n${raw}`,
  (raw) => raw.replace("Subject: ", "SUBJECT : "),
  (raw) => raw.replace("\r\nMIME-Version: 1.0", ""),
];

function replaceNth(raw: string, pattern: RegExp, at: number, to: string): string {
  const found = [...raw.matchAll(pattern)];
  const match = found[at % Math.max(found.length, 1)];
  return match ? raw.slice(0, match.index) + to + raw.slice(match.index + match[0].length) : raw;
}

describe("a signed mail means one thing, however often and in whatever dress it comes", () => {
  test("its own words, its subject and what makes it the same mail", async () => {
    await using dns = await startDnsServer({ ...signingZone(DOMAIN), ...keyZone(DOMAIN) });
    const resolver = createResolver({ servers: [dns.address] });
    const judge = async (
      raw: Buffer,
    ): Promise<{ headers: MailHeaders; form: SignedForm | undefined; passes: boolean }> => {
      const headers = readHeaders(raw);
      const from = fromMailbox(headers);
      if (!from.ok || headers.problem !== null) return { headers, form: undefined, passes: false };
      const envelope = {
        remote_address: "192.0.2.9",
        helo: "x.test",
        mail_from: "m@evil.test",
        hostname: "mx.test",
      };
      const identity = await authenticateSender({ raw, headers, from, resolver, ...envelope });
      const { results } = await dkimVerify(raw, { resolver: resolver as never, strict: true });
      const form = (identity.authenticated && readingFor(INBOX, identity, headers)) || undefined;
      return { headers, form, passes: results[0]?.status.result === "pass" };
    };
    let same = 0;
    await fc.assert(
      fc.asyncProperty(
        FORMS,
        fc.array(LINES, { maxLength: 10 }),
        fc.constantFrom("relaxed/relaxed", "relaxed/simple", "simple/simple", "simple/relaxed"),
        fc.array(fc.tuple(fc.nat(CHANGES.length - 1), fc.nat(40)), { minLength: 1, maxLength: 3 }),
        async (type, lines, c, changes) => {
          const raw = signAs(DOMAIN, Buffer.from([...TO_INBOX(type), "", ...lines, ""].join("\r\n")), { c });
          let text = raw.toString("latin1");
          for (const [change, at] of changes) text = CHANGES[change]?.(text, at) ?? text;
          const altered = Buffer.from(text, "latin1");
          const [first, second] = [await judge(raw), await judge(altered)];
          expect(first.form).toBeDefined();
          if (!second.form) return;
          same += 1;
          expect(second.passes).toBe(true);
          expect(second.form).toEqual(first.form as SignedForm);
          const form = first.form as SignedForm;
          expect(inSignedForm(altered, second.headers, form)).toEqual(
            inSignedForm(raw, first.headers, form) as Uint8Array,
          );
          expect(await readMail(altered, { form })).toEqual(await readMail(raw, { form }));
          const one = readMailWords(raw, first.headers, "");
          const other = readMailWords(altered, second.headers, "");
          // How often a text comes is counted by its bytes: whoever can change them can change its words as well.
          expect({ ...other, hop: 0, body_hash: "" }).toEqual({ ...one, hop: 0, body_hash: "" });
        },
      ),
      { numRuns: 400 },
    );
    expect(same).toBeGreaterThan(50);
  }, 60_000);

  test("a signed mail means nothing where its stored form is not of this body", async () => {
    const raw = Buffer.from([...TO_INBOX(["Content-Type: text/plain"]), "", "Say hello.", ""].join("\r\n"));
    const form: SignedForm = {
      fields: ["from", "content-type"],
      header: "relaxed",
      body: "relaxed",
      body_hash: "x",
    };
    const outcome = await readMail(raw, { form });
    expect(outcome).toMatchObject({ ok: true, mail: { new_text: "", own_subject: false } });
    expect(outcome.ok && outcome.mail.warnings.join()).toContain("its body is not the one that was signed");
  });
});
