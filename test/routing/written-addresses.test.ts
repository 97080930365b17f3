import { expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { toolRoom, type ToolRoom, type Wanted } from "../support/tool-room.ts";

const OFFER = "https://shop.example.net/offer?id=7";
const FORWARDED = `---------- Forwarded message ---------\nFrom: Eve <eve@example.net>\nDate: Fri, 3 May 2024 at 10:00\nSubject: Offer\nTo: <ada@example.com>\n\nA table for 5: ${OFFER}`;
const served = [{ name: "post", description: "Posts to the chat.", run: () => "posted" }];

async function posted(room: ToolRoom): Promise<unknown[]> {
  // A new mail with a web address could be a page that was shared, and has no target.
  const headers = { "In-Reply-To": "<offer@example.net>" };
  await room.send({ subject: "Fwd: Offer", headers, text: `@chat Post the gist.\n\n${FORWARDED}` });
  await room.drain();
  return room.tools.calls.map(({ args }) => args["text"]);
}

const post = (text: string) => [{ name: "chat__post", args: { text } }];

test("an address of the mail is written down just so", async () => {
  const text = `A table is on offer.\n\nSee ${OFFER}.`;
  await using room = await toolRoom([post(text), "Done."], { label: "Chat", served });
  expect(await posted(room)).toEqual([text]);
});

test("one that the model made up is not, and the model is told to write without it", async () => {
  const plain = "A table is on offer.\n\nFor 5.";
  const rounds = [post(`${plain}\n${OFFER}&for=ada`), post(plain), "Done."];
  await using room = await toolRoom(rounds, { label: "Chat", served });
  expect(await posted(room)).toEqual([plain]);
  expect(room.model.requests[1]?.body?.messages.at(-1)?.content).toContain("Write it without that address");
  expect(await room.newest()).toMatchObject({ state: "done", result: "Done." });
});

/** What an address can be longer by where a chat makes a link of it, although no address is meant to have that in it. */
const GLUED: [name: string, behind: string][] = [
  ["a letter that is not ASCII", "\u00e9ada"],
  ["a query behind such a letter", "&\u00e9=ada"],
  ["a dash", "\u2013ada"],
  ["a letter of a script without spaces", "\u6771ada"],
  ["an ideographic space", "\u3000ada"],
  ["a no-break space", "\u00a0ada"],
  ["a zero-width space", "\u200bada"],
  ["a bracket", ")ada"],
  ["a bracket and a query", ")?for=ada"],
  ["a bracket and a scheme", ")https:ada"],
  ["a square bracket and a scheme", "]https:ada"],
  ["a quotation mark", '"ada'],
  ["an angle bracket", ">ada"],
  ["a bar", "|ada"],
  ["a caret", "^ada"],
  ["a backtick", "`ada"],
  ["square brackets", "[ada]"],
  ["braces", "{ada}"],
];

test.each(GLUED)(
  "one that goes on behind an address of the mail with %s is not written",
  async (_, behind) => {
    const plain = "A table is on offer.\n\nFor 5.";
    await using room = await toolRoom([post(`${plain}\n${OFFER}${behind}`), post(plain), "Done."], {
      label: "Chat",
      served,
    });
    expect(await posted(room)).toEqual([plain]);
    expect(room.model.requests[1]?.body?.messages.at(-1)?.content).toContain("with a space behind it");
  },
);

test.each(["x-", "git+", "a.", "x://", "tel:", "ms-teams:", "data:,", "notes.md/"])(
  "one that the model made up is not written behind %s, as chats look for what begins with https",
  async (before) => {
    const plain = "A table is on offer.\n\nFor 5.";
    await using room = await toolRoom([post(`${plain}\n${before}${OFFER}&for=ada`), post(plain), "Done."], {
      label: "Chat",
      served,
    });
    expect(await posted(room)).toEqual([plain]);
  },
);

test.each([
  `A table.\n\n(See ${OFFER}).`,
  `A table.\n\n**[Book it](${OFFER})**.`,
  `A table.\n\n[${OFFER}](${OFFER})`,
  `A table.\n\n<${OFFER}>: for 5`,
  `A table.\n\n"${OFFER}", for 5`,
  `A table.\n\n| Offer | For |\n|---|---|\n|${OFFER}| 5 |`,
  `A table.\n\n<p><a href="${OFFER}">Book it</a></p>`,
  `A table.\n\n\u201c${OFFER}\u201d, \`${OFFER}\`, ${OFFER}\u2026`,
  `{"text": "${"A table. ".repeat(40)}\\n${OFFER}\\nFor 5.", "more": [{"text": "For 5:\\n${OFFER}"}]}`,
])("an address of the mail may have marks around it: %j", async (text) => {
  await using room = await toolRoom([post(text), "Done."], { label: "Chat", served });
  expect(await posted(room)).toEqual([text]);
});

const SITES = Array.from({ length: 30 }, (_, at) => `https://s${at}.m\u00fcnchen.de/offer`);

test.each([
  ["the first are", SITES[3] ?? "", true],
  ["the others are not", SITES[25] ?? "", false],
])("of many addresses of one site with letters that are not ASCII %s", async (_, address, is_written) => {
  const text = `A table is on offer.\n\n${address}`;
  await using room = await toolRoom([post(text), "Done."], { label: "Chat", served });
  const headers = { "In-Reply-To": "<offer@example.net>" };
  const mail = `@chat Post the gist.\n\n${FORWARDED}\n${SITES.join("\n")}`;
  await room.send({ subject: "Fwd: Offer", headers, text: mail });
  await room.drain();
  expect(room.tools.calls.map(({ args }) => args["text"])).toEqual(is_written ? [text] : []);
});

/** Ways to write the address of the mail that lead to the same page; whoever is asked for it can tell them apart. */
const SPELLED = [
  "https://shop.example.net/ada/../offer?id=7",
  "https://shop.example.net/ada/%2e%2e/offer?id=7",
  "https://shop.example.net/./offer?id=7",
  "https://Shop.example.net/offer?id=7",
  "HTTPS://shop.example.net/offer?id=7",
  "https:/shop.example.net/offer?id=7",
  "https:\\\\shop.example.net/offer?id=7",
  "https://shop.example.net:443/offer?id=7",
  "https://@shop.example.net/offer?id=7",
  "https://%73hop.example.net/offer?id=7",
];

test.each(SPELLED)("an address of the mail is written in no other way: %s", async (address) => {
  const plain = "A table is on offer.\n\nFor 5.";
  const rounds = [post(`${plain}\n${address}`), post(plain), `On offer: ${address}`];
  await using room = await toolRoom(rounds, { label: "Chat", served });
  expect(await posted(room)).toEqual([plain]);
  const { text = "", html } = await simpleParser(Buffer.from((await room.outgoing())[0]?.raw ?? ""));
  expect([text, html].join("")).not.toContain(address);
  expect(text).toContain("(link left out)");
});

const MADE_UP = "https://evil.example.org/ada";
/** What a program makes of the HTML that it quotes as plain text. */
const asText = (html: string) => html.replaceAll(/<br[^>]*>|<\/p>/g, "\n").replaceAll(/<[^>]+>/g, "");

test.each<[string, string, (html: string, text: string) => string]>([
  ["with percent signs", "https%3A%2F%2Fevil.example.org%2Fada", (_, text) => text],
  ["with an encoded slash", "evil.example.org%2Fada", (_, text) => text],
  ["in wide letters", "evil.example\uff0eorg\uff0fada", (_, text) => text],
  ["as an encoded word", "=?utf-8?q?evil.example.org=2Fada?=", (_, text) => text],
  ["with an escape", String.raw`evil.example\u002eorg\u002fada`, (_, text) => text],
  ["with a bold letter", "evi**l**.example.org/ada", asText],
  ["with code in it", "evil.ex`ample.org`/ada", asText],
  ["with a link in it", `[evil](${OFFER}).example.org/ada`, asText],
])("one that an answer has in disguise is not known by its quote: %s", async (_, disguised, quote) => {
  const rounds = [`Ask at ${disguised} for more.`, post(`A table is on offer.\n\n${MADE_UP}`), "Done."];
  await using room = await toolRoom(rounds, { label: "Chat", served });
  const first = { "Message-ID": "<one@example.com>", "In-Reply-To": "<offer@example.net>" };
  await room.send({ subject: "Fwd: Offer", headers: first, text: `Sum it up.\n\n${FORWARDED}` });
  await room.drain();
  const answer = await simpleParser(Buffer.from((await room.outgoing())[0]?.raw ?? ""));
  const quoted = quote(String(answer.html), answer.text ?? "")
    .trim()
    .replaceAll("\n", "\n> ");
  expect(quoted).toContain("for more");
  await room.send({
    subject: "Re: Offer",
    rcpt: answer.replyTo?.value[0]?.address ?? "",
    to: answer.replyTo?.text ?? "",
    headers: { "Message-ID": "<two@example.com>", "In-Reply-To": answer.messageId ?? "" },
    text: `@chat Post the gist.\n\nOn Fri, 3 May 2024 at 11:00, Desk <desk@mail.example> wrote:\n> ${quoted}`,
  });
  await room.drain();
  expect(room.model.requests.length).toBeGreaterThan(2);
  expect(room.tools.calls).toEqual([]);
});

test("by the marks behind one address that is written again and again little is told", async () => {
  const letters = Array.from({ length: 60 }, (_, nth) => (nth * 7_919) % 16);
  const marks = letters.map((letter) =>
    letter.toString(2).padStart(4, "0").replaceAll("0", "_").replaceAll("1", "~"),
  );
  const spelled = `A table.\n\n${marks.map((behind) => OFFER + behind).join("\n")}`;
  const calm = `A table.\n\n${marks.map(() => `(${OFFER}).`).join("\n")}`;
  await using room = await toolRoom([post(spelled), post(calm), "Done."], { label: "Chat", served });
  expect(await posted(room)).toEqual([calm]);
  expect(room.model.requests[1]?.body?.messages.at(-1)?.content).toContain("after so many of that site");
});

test("by how many calls write one address little is told, whatever stands around it", async () => {
  const texts = Array.from({ length: 10 }, (_, nth) => `Offer ${nth}:\n\n${OFFER} ${"_~*'".charAt(nth % 4)}`);
  const [rounds, plain] = [texts.map((text) => post(text)), "Without an address."];
  await using room = await toolRoom([...rounds, post(plain), "Done."], { label: "Chat", served });
  expect(await posted(room)).toEqual([...texts.slice(0, 3), plain]);
  const refusal = room.model.requests[4]?.body?.messages.at(-1)?.content;
  expect(refusal).toContain("after so many of that site, in this call or earlier ones");
});

test("one that the instruction names is written by as many calls as it takes", async () => {
  const named = "https://wiki.example.com/rooms";
  const texts = Array.from({ length: 5 }, (_, nth) => `Room ${nth}: ${named}`);
  await using room = await toolRoom([texts.flatMap(post), "Done."], { label: "Chat", served });
  const text = `See ${named}\n\n@chat Post each room, with that address.\n\n${FORWARDED}`;
  await room.send({ subject: "Fwd: Offer", headers: { "In-Reply-To": "<offer@example.net>" }, text });
  await room.drain();
  expect(room.tools.calls.map(({ args }) => args["text"])).toEqual(texts);
});

const BOOK = `${OFFER}&for=ada`;
const office = [
  { name: "append", run: () => "done" },
  { name: "read_page", annotations: { readOnlyHint: true }, run: () => `A table: ${BOOK} .` },
  {
    name: "join",
    annotations: { readOnlyHint: true },
    run: (args: Record<string, unknown>) => String(args["q"]).replaceAll(" ", ""),
  },
];

test.each<[string, Wanted[], boolean]>([
  [
    "that it had put together itself, and read back",
    [
      { name: "chat__append", args: { text: "Hello" } },
      { name: "chat__read_page", args: {} },
    ],
    false,
  ],
  ["that it had a tool say", [{ name: "chat__join", args: { q: BOOK.replaceAll(/(.{5})/g, "$1 ") } }], false],
  ["on a page that it read", [{ name: "chat__read_page", args: {} }], true],
])("a run writes an address %s: %#", async (_, calls, is_written) => {
  const text = `A table is on offer.\n\n${BOOK}`;
  await using room = await toolRoom([...calls.map((call) => [call]), post(text), "Done."], {
    label: "Chat",
    served: [...served, ...office],
  });
  expect((await posted(room)).includes(text)).toBe(is_written);
});
