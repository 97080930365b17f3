/** What a text is made of that is to take a reader as long as it can: pieces that begin something and never end it. */
export const SHAPES: Record<string, string> = {
  tabs: "\t",
  "empty lines": "\n",
  "bare CR": "\r",
  "tabs and bare CR": "\t\r",
  slashes: "/",
  punctuation: ".,;:!?",
  "://": "://",
  "http://": "http://",
  "links in a row": "http://a.b)",
  "labels of a host": "a.",
  "hosts of no country": "a.zz/",
  "![": "![",
  "Markdown links": "[a](http://a.b) ",
  "rows of a table": "|a|b|\n",
  "a table without end": "a|b\n-|-\n",
  "stars and underlines": "_*",
  backticks: "`a``",
  fences: "```\n",
  "- -": "- - ",
  words: "word ",
  "paths of files": "/a1.txt ",
  "letters of many": "\ufdfa",
  "<a ": "<a ",
  "<!--": "<!--",
  "<!DOCTYPE[": "<!DOCTYPE[",
  "<div>": "<div>",
  "<svg onload=": "<svg onload=",
  "<p style='": "<p style='",
  "data: pictures": '<img src="data:image/png;base64,',
  "&#": "&#",
  "=?utf-8?q?": "=?utf-8?q?",
  "; a=": '; a="',
  "<a@b.de>,": "<a@b.de>,",
  "Message-ID:": "Message-ID:",
  "Message-ID: in lines": "> Message-ID: \t",
  "will be retried": "will be retr",
  "5.1.1.": "5.1.1.",
  "boundary lines": "--b\r\n",
  "headers of parts": "Content-Type: message/rfc822\r\n\r\n",
  "delivery fields": "Action: failed\r\n\r\n",
  BEGIN: "BEGIN:VEVENT\r\nRRULE:FREQ=DAILY\r\n",
  "cells of formulas": "=1,' ",
  "zero width": "\u200d",
  "marks on one letter": "a\u0301\u0301",
  "marks out of order": "\u0301\u0316",
  "full width": "\uff41\uff0e",
  "half an emoji": "\ud83d\udc68\u200d",
  '{"a":': '{"a":',
};

/** With a letter at its end that no such run expects, so that whoever ran to it has to go back. */
export function textOf(unit: string, chars: number): string {
  return `${unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars - 1)}x`;
}

/** The same for readers of JSON: so many small values that each costs more than its characters. */
export const STRUCTURES: Record<string, (chars: number) => string> = {
  "control: an empty list": () => "[]",
  "empty objects": (chars) => listOf(chars, () => "{}"),
  numbers: (chars) => listOf(chars, () => "1"),
  "texts as parts": (chars) => listOf(chars, () => '{"type":"text","text":"a"}'),
  "objects of other names": (chars) => listOf(chars, (index) => `{"k${index}":1}`),
  "many members": (chars) => `[{${filled(chars - 4, (index) => `"k${index}":{}`)}}]`,
  nested: (chars) => `${"[".repeat(chars / 2)}${"]".repeat(chars / 2)}`,
};

function listOf(chars: number, piece: (index: number) => string): string {
  return `[${filled(chars - 2, piece)}]`;
}

function filled(chars: number, piece: (index: number) => string): string {
  const pieces: string[] = [];
  for (let size = 0, index = 0; size < chars; index += 1) {
    const made = piece(index);
    pieces.push(made);
    size += made.length + 1;
  }
  return pieces.join(",");
}
