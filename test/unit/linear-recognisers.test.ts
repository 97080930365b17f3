import { expect, test } from "bun:test";
import fc from "fast-check";
import { parse } from "tldts";

import type { Tool } from "../../src/trust/guard/tool.ts";
import { type FoundLink, findLink } from "../../src/trust/shown/find-link.ts";
import { bounceDetails } from "../../src/mail/reading/machine-mail.ts";
import { readBounce } from "../../src/mail/reading/plain-bounce.ts";
import { harmlessXml } from "../../src/trust/shown/harmless-text.ts";
import { objectionTo } from "../support/guard.ts";

/**
 * What recognises something in the texts of others was once written as patterns that take the square of a hostile
 * text's length. What replaced them has to recognise the same: here both read the same small texts.
 */
const RUNS = 20_000;

/** Texts of pieces that mean something to a recogniser, in any order, and of single characters between them. */
function textOf(pieces: string[], maxLength = 14): fc.Arbitrary<string> {
  const piece = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...pieces) }, fc.string({ maxLength: 2 }));
  return fc.array(piece, { maxLength }).map((parts) => parts.join(""));
}

function agree<Given>(
  given: fc.Arbitrary<Given>,
  one: (text: Given) => unknown,
  other: (text: Given) => unknown,
) {
  // On a failure fast-check prints its seed and the shortest text.
  fc.assert(
    fc.property(given, (text) => expect(one(text)).toEqual(other(text))),
    { numRuns: RUNS },
  );
}

test("a bounce in words names the mail that the earlier pattern found in it", () => {
  const pieces = [
    "Message-ID:",
    "message-id:",
    " ",
    "\t",
    "\n",
    "\r",
    "\u2028",
    ">",
    "> ",
    "<",
    "a@b",
    "<a@b>",
    "x",
  ];
  agree(
    textOf(pieces),
    (text) => readBounce(`Subject: x\n\n550 5.1.1 no\n${text}`).original_message_id,
    (text) => {
      const body = `\n\n550 5.1.1 no\n${text}`.replace(/\r\n/g, "\n");
      const found = /^[> \t]*message-id:[ \t]*\n?[ \t]*<([^<>\s]{1,500})>/im.exec(body);
      return found?.[1];
    },
  );
});

test("a delivery status has the fields that the earlier pattern read", () => {
  const pieces = [
    "Action",
    "Status",
    ":",
    " ",
    "\t",
    "\r",
    "\u2028",
    "failed",
    "5.1.1",
    "\n",
    "\r\n",
    "\n\n",
    "é",
    "x",
  ];
  const start = "Content-Type: message/delivery-status\n\n";
  agree(
    textOf(pieces),
    (text) => bounceDetails(start + text),
    (text) => earlierStatus(start + text),
  );
});

function earlierStatus(raw: string): object {
  const lines = raw.replace(/\r?\n[ \t]+/g, " ").split(/\r?\n/);
  const groups = [new Map<string, string>()];
  const body = lines.indexOf("");
  for (const line of body < 0 ? [] : lines.slice(body + 1)) {
    if (line.startsWith("--")) break;
    const [, name, value] = /^([^\s:]+)\s*:\s*(.*)$/.exec(line) ?? [];
    if (line.trim() === "") groups.push(new Map());
    else if (name && value) groups.at(-1)?.set(name.toLowerCase(), value.trim().toLowerCase());
  }
  const all = groups.filter((fields) => fields.has("action") || fields.has("status"));
  const fields = all.find((one) => one.get("action") === "failed") ?? all[0];
  const found = {
    status: /^[245]\.\d{1,3}\.\d{1,3}(?!\d)/.exec(valueIn(fields, "status"))?.[0],
    action: /^[a-z]+/.exec(valueIn(fields, "action"))?.[0],
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

function valueIn(fields: Map<string, string> | undefined, name: string): string {
  return fields?.get(name) ?? "";
}

test("the document type that is taken out of XML is the one that the earlier pattern found", () => {
  const pieces = ["<!DOCTYPE", "<!doctype", "[", "]", ">", " ", "a", "<a>", "<!ENTITY", '"'];
  const long = fc.constantFrom("", " ".repeat(100), " ".repeat(101), "x".repeat(2_000), "x".repeat(2_001));
  agree(
    fc.tuple(textOf(pieces), long, textOf(pieces)).map((parts) => parts.join("")),
    (text) => harmlessXml(text),
    (text) => {
      const bare = text
        .replace(/<!DOCTYPE[^[\]>]{0,2000}(?:\[[^\]]*\]\s{0,100})?>/i, "")
        .replaceAll(/<\?[^<>]{0,5000}\?>/g, "");
      return /<!DOCTYPE|<!ENTITY|<!ATTLIST|<\?/i.test(bare)
        ? null
        : `<?xml version="1.0" encoding="UTF-8"?>\n${bare.trim()}\n`;
    },
  );
});

test("an address in a text is where the earlier pattern found it", () => {
  const pieces = [
    ..."/\\.:@-_?#[](){}<>|\"'` \n".split(""),
    ..."http:// https: www. mailto: data:, a b.de co.uk booking.com 1.2.3.4 /24 :80 ftp:/ x._y.com example.org é 中".split(
      " ",
    ),
  ];
  agree(textOf(pieces), allOf(findLink), allOf(earlierLink));
});

type Find = (text: string, from: number) => FoundLink | undefined;

function allOf(find: Find): (text: string) => FoundLink[] {
  return (text) => {
    const found: FoundLink[] = [];
    for (let link = find(text, 0); link && found.length < 50; link = find(text, link.end)) found.push(link);
    return found;
  };
}

const LABEL = String.raw`[\p{L}\p{M}\p{N}_\-]`;
const HOST = String.raw`${LABEL}+(?:\.${LABEL}+)+`;
const LOCAL = String.raw`[\p{L}\p{M}\p{N}.!#$%&'*+\/=?^_\x60\{\|\}~\-]`;
const REST = String.raw`(?:(?:[^\s\/\\<>"@\[\]]{0,100}@)?\[[0-9a-f:.%]{2,60}\])?[^\s<>"\x60\|\{\}\^\[\]]*`;
const SCHEME_START = String.raw`(?<![a-z0-9+.\-])`;
const EARLIER_LINK = new RegExp(
  [
    String.raw`(?:https?|ftps?|wss?|file):(?=[^\s<>"])${REST}`,
    String.raw`${SCHEME_START}[a-z][a-z0-9+.\-]{0,30}:[\/\\]{2}${REST}`,
    String.raw`${SCHEME_START}(?:mailto|tel|sms|smsto|callto|sips?|xmpp|skype|facetime|magnet|javascript|vbscript|search-ms|ms-[a-z\-]{2,20}):(?=[^\s<>"])${REST}`,
    String.raw`${SCHEME_START}data:(?:[a-z]{1,20}\/[a-z0-9.+\-]{1,60})?[;,]${REST}`,
    String.raw`(?<!${LABEL})www\d{0,3}\.(?=[^\s<>"])${REST}`,
    String.raw`(?<!${LOCAL})${LOCAL}+@${HOST}`,
    String.raw`(?<bare>(?<!${LABEL})${HOST})(?<more>(?::\d{1,5})?(?:[\/\\?#]${REST})?)`,
  ].join("|"),
  "giu",
);
const WEB_REST = new RegExp(String.raw`:(?=[^\s<>"])${REST}`, "iuy");

function earlierLink(text: string, from: number): FoundLink | undefined {
  const rest = text.slice(from);
  EARLIER_LINK.lastIndex = 0;
  for (let match = EARLIER_LINK.exec(rest); match; match = EARLIER_LINK.exec(rest)) {
    const { bare, more = "" } = match.groups ?? {};
    const { index } = match;
    const found = { start: from + index, end: from + index + match[0].length };
    if (bare === undefined) return found;
    if (isPlace(bare, more) || (rest[index - 1] === "." && isPlace(`x.${bare}`, more))) return found;
    const head = bare.replace(/\._.*$/s, "");
    if (head !== bare && isPlace(head, "")) return { start: found.start, end: found.start + head.length };
    const end = index + bare.length;
    WEB_REST.lastIndex = end;
    const web = /(?:https?|ftps?|wss?|file)$/i.test(bare) ? WEB_REST.exec(rest) : null;
    if (web) return { start: from + index, end: from + end + web[0].length };
    EARLIER_LINK.lastIndex = end;
  }
  return undefined;
}

function isPlace(host: string, more: string): boolean {
  const { isIp, isIcann, subdomain } = parse(host);
  if (isIp === true) return more !== "" && !/^\/\d{1,2}$/.test(more);
  return isIcann === true && (more !== "" || (subdomain !== "" && subdomain !== "www"));
}

test("arguments without a mark of an address have none that the patterns of the guard would find", () => {
  const patterns = [
    /(?:[a-z][a-z0-9+.-]{1,20}:)?[/\\]{2}[^\s"'<>()[\]{}|]+/i,
    /\b(?:https?|ftps?|wss?|file):(?![/\\]{2})[^\s"'<>()[\]{}|]+/i,
    /\b(?:data|mailto|tel|sms|javascript|blob|magnet|xmpp|sip):[^\s"'<>]+/i,
    /(?<![^\s"'<>()[\]{},;:@])[^\s"'<>()[\]{},;:@]+@[^\s"'<>()[\]{},;:@]+/,
    /(?<![\p{L}\p{N}_@.-])(?:[\p{L}\p{N}_-]+\.)+[\p{L}\p{N}-]{2,}\.?(?::\d+)?(?:[/?#][^\s"'<>]*)?/iu,
    /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/?#][^\s"'<>]*)?/,
    /\+\d[\d ()-]{6,}\d/,
  ];
  const ascii = fc.string({ unit: "binary-ascii", maxLength: 30 });
  const pieces = textOf(["http", "mailto", "com", "1", "a", "-", "_", "?", "#", '"', "\0", "\x7f", "\r"]);
  fc.assert(
    fc.property(fc.oneof(ascii, pieces), (text) => {
      fc.pre(!/[/\\:@.+]|\P{ASCII}/u.test(text));
      expect(patterns.filter((pattern) => pattern.test(text))).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});

test("an address is what stands in the trusted text without the marks behind it, and no mark more", () => {
  const marks = fc.string({ unit: fc.constantFrom("/", ".", ",", ";", ":", "!", "?", ")"), maxLength: 6 });
  const page = fc.constantFrom("http://a.de", "http://a.de/x", "http://a.de/?y", "a.de/x", "www.a.de");
  fc.assert(
    fc.property(page, marks, marks, (named, said, added) => {
      const trusted = `Read ${named}${said} now`;
      const wanted = `${named}${added}`;
      const root = named.endsWith("a.de");
      const end = root ? /[/.]$/ : /\/$/;
      const read = hrefOf(named + added.replace(end, ""));
      const beginnings = Array.from(
        { length: said.length + 1 },
        (_, length) => named + said.slice(0, length),
      );
      const asSaid = beginnings.some((address) => hrefOf(address) === read);
      // A name of a host is whole with a stop behind it.
      if (allows(wanted, trusted)) expect(asSaid || (root && added === ".") || added === "").toBe(true);
      if (!root) expect(allows(named, `Read ${named}${said.replaceAll("/", ".")} now`)).toBe(true);
    }),
    { numRuns: 3_000 },
  );
});

/** The address as a URL parser reads it: an empty port, a stop as a path and the first page's slash are no difference. */
function hrefOf(address: string): string {
  const url = address.startsWith("http") ? address : `http://${address}`;
  return URL.canParse(url) ? new URL(url).href : url;
}

const TOOL: Tool = {
  target: "mcp:x",
  name: "fetch",
  description: "",
  parameters: {},
  read_only: true,
  destructive: false,
  foreign: true,
  call: () => Promise.reject(new Error("not called")),
};

function allows(url: string, trusted_text: string): boolean {
  const powers = { mayUse: () => true, mayWrite: () => true, destroy: true };
  return (
    objectionTo({
      tool: TOOL,
      args: { url },
      powers,
      tainted: true,
      beside: null,
      subject_alone: false,
      instruction: trusted_text,
      trusted_text,
      places: [],
      read_at: [],
      anybodys: true,
      own_domains: ["mw.test"],
    }) === null
  );
}

test.each<[before: RegExp, now: RegExp, pieces: string[]]>([
  [/\/+$/, /(?<!\/)\/+$/, ["/", "a", "\n"]],
  [/[. ]+$/, /(?<![. ])[. ]+$/, [".", " ", "a", "\n"]],
  [/[.\s]+$/, /(?<![.\s])[.\s]+$/, [".", " ", "\t", "\n", "a"]],
  [/^\[|\]$|\.+$/g, /^\[|\]$|(?<!\.)\.+$/g, ["[", "]", ".", "a"]],
  [/^\W+|\W+$/g, /^\W+|(?<!\W)\W+$/g, ["*", " ", "a", "_", "é"]],
  [
    /\S*(?:\*{2,}|\.{3}|…|•{2,})\S*/gu,
    /(?<!\S)\S*(?:\*{2,}|\.{3}|…|•{2,})\S*/gu,
    ["*", "**", "...", "…", "a", " "],
  ],
  [/[a-z%]+$/, /(?<![a-z%])[a-z%]+$/, ["a", "%", "1"]],
  [/^[\w-]*[.#]?[\w-]+$/, /^(?:[\w-]+|[\w-]*[.#][\w-]+)$/, ["a", "-", ".", "#", "!"]],
])("%p finds what %p finds", (before, now, pieces) => {
  agree(
    textOf(pieces, 8),
    (text) => text.replace(now, "|"),
    (text) => text.replace(before, "|"),
  );
});
