import { expect, test } from "bun:test";
import { toolRoom, type ToolRoom } from "../support/tool-room.ts";

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
