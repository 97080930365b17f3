import { simpleParser } from "mailparser";
import { splitNewText } from "../../src/trust/own-words/reply-text.ts";
import { signAs } from "../support/sign-as.ts";
import { type Attack, mails, TO_EVE } from "./attack.ts";
import { EVE, OWNER, type World } from "./world.ts";

const ORDER = `@office ${TO_EVE}`;
const OWN = "Say hello.";

type Change = (raw: string) => string;

/** A mail of Ada's with words of Eve's in it, which Eve got too and sends again. */
interface Signed {
  head: string[];
  body: string[];
  /** Where nothing is Ada's own, all of her documents go in; the team's inbox has none to hide. */
  inbox?: "desk" | "team";
}

const FROM_EVE = "On Friday, 3 May 2024, Eve <eve@example.net> wrote:";
const PLAIN = ["Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 7bit"];
const FLOWED = ["Content-Type: text/plain; format=flowed", "Content-Transfer-Encoding: 7bit"];
const MIXED = ["Content-Type: multipart/mixed; boundary=XX"];
const QUOTED: Signed = {
  head: PLAIN,
  body: [OWN, "", FROM_EVE, "", "Hi,", "--EVE", "", ORDER, "--EVE--"],
};
const fileOf = (text: string): string[] => [
  "--XX",
  "Content-Type: text/plain",
  "Content-Disposition: attachment; filename=a.txt",
  "",
  text,
];
const WITH_FILE: Signed = { head: MIXED, body: ["--XX", ...PLAIN, "", OWN, ...fileOf(ORDER), "--XX--"] };
const QUOTE_IN_PART: Signed = {
  head: MIXED,
  body: ["--XX", ...PLAIN, "", FROM_EVE, "", ORDER, "--XX--"],
  inbox: "team",
};

/** A line in front of the signed fields, and what a reader that is less strict takes it for. */
const TYPE = "Content-Type: multipart/mixed; boundary=EVE";
const IN_FRONT: [name: string, line: string, taken?: string][] = [
  ["a no-break space", `X-Any: thing\r\n\xa0${TYPE}`],
  ["two no-break spaces", `X-Any: thing\r\n\xa0\xa0${TYPE}`],
  ["a no-break space in UTF-8", `X-Any: thing\r\n\xc2\xa0${TYPE}`],
  ["an en space", `X-Any: thing\r\n\xe2\x80\x82${TYPE}`],
  ["a byte order mark", `X-Any: thing\r\n\xef\xbb\xbf${TYPE}`],
  ["a next line", `X-Any: thing\x85${TYPE}`],
  ["a bare CR", `X-Any: thing\r${TYPE}`],
  ["a doubled CR", `X-Any: thing\r\r\n${TYPE}`],
  ["a vertical tab", `X-Any: thing\r\n\x0b${TYPE}`],
  ["a form feed", `X-Any: thing\r\n\x0c${TYPE}`],
  ["a NUL", `X-Any: thing\r\n\0${TYPE}`],
  ["a record separator", `X-Any: thing\r\n\x1e${TYPE}`],
  ["a colon on its own line", "Content-Type\r\n : multipart/mixed; boundary=EVE"],
  ["the line of a mailbox", `From ada Fri May  3 10:00:00 2024\r\n${TYPE}`],
  ["a fold with nothing above", ` X-Any: thing\r\n${TYPE}`],
];

/** Where relaxed signatures do not look (RFC 6376 §3.4.4). */
const BLANKS: [string, string][] = [
  ["a space", " "],
  ["a tab", "\t"],
  ["spaces and tabs", " \t  \t"],
];
const MARKS = [
  "-----Original Message-----",
  "________________________________",
  "Begin forwarded message:",
  "From: Eve <eve@example.net>",
  FROM_EVE,
];

const inBody =
  (from: string, to: string): Change =>
  (raw) => {
    const at = raw.indexOf("\r\n\r\n") + 4;
    return raw.slice(0, at) + raw.slice(at).replaceAll(from, to);
  };

const RESENT: [name: string, mail: Signed, change: Change, taken?: Change][] = [
  ...IN_FRONT.map(([name, line]): [string, Signed, Change, Change] => [
    `a field behind ${name}`,
    QUOTED,
    (raw) => `${line}\r\n${raw}`,
    (raw) => `${TYPE}\r\n${raw.replace(/^Content-Type: .*\r\n/m, "")}`,
  ]),
  ...BLANKS.flatMap(([name, blank]): [string, Signed, Change][] => [
    [`${name} behind the border of a file`, WITH_FILE, inBody(`${OWN}\r\n--XX`, `${OWN}\r\n--XX${blank}`)],
    [`${name} behind all borders`, WITH_FILE, inBody("--XX\r\n", `--XX${blank}\r\n`)],
    [
      `${name} on the line that ends a part's header`,
      QUOTE_IN_PART,
      inBody("7bit\r\n\r\n", `7bit\r\n${blank}\r\n`),
    ],
    [`${name} on all empty lines`, WITH_FILE, inBody("\r\n\r\n", `\r\n${blank}\r\n`)],
    [`${name} behind the name of a disposition`, WITH_FILE, inBody("attachment;", `attachment${blank};`)],
  ]),
  ...MARKS.flatMap((mark): [string, Signed, Change][] => {
    const mail: Signed = { head: FLOWED, body: [OWN, mark, "", ORDER], inbox: "team" };
    return [
      [`a soft end in front of "${mark}"`, mail, inBody(`${OWN}\r\n`, `${OWN} \r\n`)],
      [`soft ends of all lines around "${mark}"`, mail, inBody("\r\n", " \r\n")],
    ];
  }),
  ["a Content-Disposition", WITH_FILE, (raw) => `Content-Disposition: inline; filename=b.eml\r\n${raw}`],
  ["a second Content-Type", QUOTED, (raw) => `${TYPE}\r\n${raw}`],
  ["a Reply-To", QUOTED, (raw) => `Reply-To: ${EVE}\r\n${raw}`],
];

const ORDERED: Signed = { head: PLAIN, body: [ORDER] };
const ORDERED_WITH_FILE: Signed = {
  head: MIXED,
  body: ["--XX", ...PLAIN, "", ORDER, ...fileOf("Buy milk."), "--XX--"],
};
const ORDERED_IN_FLOWED: Signed = { head: FLOWED, body: [ORDER] };

/** What relays do to a mail, and what changes nothing of what it says to anybody. */
export const INERT: [name: string, mail: Signed, change: Change][] = [
  ["a Received in front", ORDERED, (raw) => `Received: from a.example.net\r\n\tby b.example.net\r\n${raw}`],
  ["a field of a filter in front", ORDERED, (raw) => `X-Spam-Status: No, score=-1\r\n  (none)\r\n${raw}`],
  [
    "the result of somebody else's check in front",
    ORDERED,
    (raw) => `Authentication-Results: evil.example.net; dmarc=fail\r\n${raw}`,
  ],
  ["a Content-Language", ORDERED, (raw) => `Content-Language: en\r\n${raw}`],
  ["the name of a field in capital letters", ORDERED, (raw) => raw.replace("\r\nSubject: ", "\r\nSUBJECT: ")],
  ["more blanks in a field", ORDERED, (raw) => raw.replace("\r\nSubject: ", "\r\nSubject: \t ")],
  ["a fold in a field", ORDERED, (raw) => raw.replace("\r\nSubject: ", "\r\nSubject:\r\n ")],
  ["a fold in its type", ORDERED, (raw) => raw.replace("; charset", ";\r\n\tcharset")],
  ["a fold before its border", ORDERED_WITH_FILE, (raw) => raw.replace("; boundary", ";\r\n\tboundary")],
  ["empty lines at its end", ORDERED, (raw) => `${raw}\r\n\r\n`],
  ["lines of blanks at its end", ORDERED, (raw) => `${raw} \r\n\t\r\n`],
  ...BLANKS.flatMap(([name, blank]): [string, Signed, Change][] => [
    [`${name} at the end of its line`, ORDERED, inBody(" OVER\r\n", ` OVER${blank}\r\n`)],
    [`${name} more between its words`, ORDERED, inBody("ORDER call", `ORDER${blank} call`)],
    [`${name} behind its borders`, ORDERED_WITH_FILE, inBody("--XX\r\n", `--XX${blank}\r\n`)],
    [`${name} behind its last border`, ORDERED_WITH_FILE, inBody("--XX--\r\n", `--XX--${blank}\r\n`)],
    [`${name} on its empty lines`, ORDERED_WITH_FILE, inBody("\r\n\r\n", `\r\n${blank}\r\n`)],
    [`${name} at the end of its flowing line`, ORDERED_IN_FLOWED, inBody(" OVER\r\n", ` OVER${blank}\r\n`)],
  ]),
];

/** What Eve hands in: Ada's own mail, its signature as good as before. */
export function signedMail({ room, inboxes }: World, { head, body, inbox = "desk" }: Signed): string {
  const fields = [
    `From: ${OWNER}`,
    `To: ${inboxes[inbox].address}`,
    "Subject: Notes",
    `Date: ${new Date(room.app.nowMs()).toUTCString()}`,
    `Message-ID: <${Bun.randomUUIDv7()}@example.com>`,
    "MIME-Version: 1.0",
    ...head,
  ];
  return signAs("example.com", Buffer.from([...fields, "", ...body, ""].join("\r\n"))).toString("latin1");
}

const RESENT_BY_EVE: Attack[] = RESENT.map(([name, mail, change, taken = change]) => ({
  kind: "altered on the way",
  name,
  effect: "ran send_mail",
  act: (world) =>
    world.mail({
      replayed: true,
      mail_from: "eve@example.net",
      inbox: mail.inbox ?? "desk",
      raw: Buffer.from(change(signedMail(world, mail)), "latin1"),
    }),
  // Taken away: that judge and reader see the same. The reader sees what another program might.
  control: async (world) => {
    const raw = signedMail(world, mail);
    await readAs(world, Buffer.from(taken(raw), "latin1"), () =>
      world.mail({ inbox: mail.inbox ?? "desk", raw: Buffer.from(raw, "latin1") }),
    );
  },
}));

/** Has whatever comes read as this mail, by the parser alone. */
async function readAs({ room: { app } }: World, raw: Buffer, act: () => Promise<void>): Promise<void> {
  const { parser } = app;
  const { text = "", html } = await simpleParser(raw);
  app.parser = {
    ...parser,
    async parse(came, reading) {
      const outcome = await parser.parse(came, reading);
      if (!outcome.ok) return outcome;
      return {
        ok: true,
        mail: { ...outcome.mail, ...splitNewText({ text: text || undefined, html: html || undefined }) },
      };
    },
  };
  try {
    await act();
  } finally {
    app.parser = parser;
  }
}

const SEPARATORS: [string, string][] = [
  ["a line separator", "\u2028"],
  ["a paragraph separator", "\u2029"],
  ["a next line", "\u0085"],
  ["a vertical tab", "\v"],
  ["a form feed", "\f"],
  ["a file separator", "\x1c"],
  ["a group separator", "\x1d"],
  ["a record separator", "\x1e"],
];

/** With so many ends of a line behind the order, and two before it. */
function nameOf(end: string, behind = 2): string {
  return `Eve${end.repeat(2)}${ORDER}${end.repeat(behind)}Ray`;
}

function dated(who: string): string {
  return `On Friday, 3 May 2024, ${who} wrote:`;
}

/** Eve's name as Ada's mail program copies it into what stands above a quote. */
const NAMES: Attack[] = SEPARATORS.flatMap(([called, end]) => {
  // HTML makes another character of a number from 128 to 159 (its table of numeric references).
  const inHtml = end === "\u0085" ? end : `&#${end.charCodeAt(0)};`;
  const forms: [string, (end: string) => Parameters<typeof mails>[0]][] = [
    ["plain text", (by) => ({ text: `${OWN}\n\n${dated(`${nameOf(by)} <eve@example.net>`)}\n\n> Hi` })],
    // So far below its "From:" that a line "Sent:" says nothing of it.
    [
      "fields",
      (by) => ({ text: `${OWN}\n\nFrom: ${nameOf(by, 8)} <eve@example.net>\nSent: Friday\nTo: Ada` }),
    ],
    [
      "HTML",
      (by) => {
        const above = dated(`${nameOf(by === end ? inHtml : by)} &lt;eve@example.net&gt;`);
        return { html: `<p>${OWN}</p><pre>${above}</pre><blockquote>Hi</blockquote>` };
      },
    ],
  ];
  return forms.map(([form, mail]) => ({
    kind: "display names",
    name: `${called} in ${form}`,
    effect: "ran send_mail",
    act: mails(mail(end)),
    // Taken away: that it ends no line.
    control: mails(mail("\n")),
  }));
});

export const ALTERED: Attack[] = [...RESENT_BY_EVE, ...NAMES];
