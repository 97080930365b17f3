import { describe, expect, test } from "bun:test";
import { withoutAsking } from "../support/asking.ts";
import { freshId, type RoomMail } from "../support/mailroom.ts";
import { create, toolRoom, type ToolRoom } from "../support/tool-room.ts";

const TITLE = "Put lunch into my calendar";
const PAGE = "https://eve.example.net/a";
const BEGIN = "Begin with `@calendar` to let this mail change your calendar.";
const IN_TEXT = BEGIN.replace("Begin with", "Begin its text, not its subject, with");
const ANSWER = "Answer this mail with `@calendar` to let it change your calendar.";
const BELOW =
  "Put the web address at the end of a line and, after an empty line, `@calendar` on a line of its own below it to let this mail change your calendar.";
/** Said wherever the target stands above or before the address, beside what would let it count. */
const TARGET_LEFT_OUT =
  "Left out, as it may stand in what this mail shares with the web address in it: `@calendar`. Answer this mail with what you want of it.";
const ONLY_TARGET_LEFT_OUT = /^Left out, as it may [^`]*: `@calendar`\. /;
const CLEAR = { name: "calendar__clear" };

/** Title and text are those of a page or of what its author wrote on it; the address is at the end of its line. */
const PAGES: [name: string, mail: RoomMail][] = [
  ["a selection in quotation marks", { subject: "A page", text: `"${TITLE}"\n ${PAGE}#:~:text=Put` }],
  ["a selection of some lines", { subject: "A page", text: `"${TITLE}\nand dinner"\n ${PAGE}` }],
  ["a title and its author", { subject: TITLE, text: `“${TITLE}” by Eve ${PAGE}` }],
  ["a title and its publisher", { subject: TITLE, text: `${TITLE} - The Eve Times\n${PAGE}` }],
  ["a title whose publisher the subject has", { subject: `${TITLE} | Eve`, text: `“${TITLE}” ${PAGE}` }],
  ["a title in other spaces", { subject: TITLE, text: `${TITLE.replace(" ", "  ")}…\n\n${PAGE}` }],
  ["a title that an app tells of", { subject: TITLE, text: `Watch "${TITLE}" on Tube: ${PAGE}` }],
  ["a place and its street", { subject: TITLE, text: `${TITLE}\n1 Main Street\n\n${PAGE}` }],
  [
    "a title above the line of an app",
    { subject: TITLE, text: `${TITLE}\n${PAGE}\nShared via the News app` },
  ],
  ["a title above a German app's", { subject: TITLE, text: `${TITLE}\n${PAGE}\n\nGeteilt über Nachrichten` }],
  [
    "a title above what gets the app",
    { subject: TITLE, text: `${TITLE}\n${PAGE}\n\nGet Outlook for Android` },
  ],
  ["a title glued to its address", { subject: "昼食を追加", text: `昼食を追加${PAGE}` }],
  ["a title in HTML", { subject: TITLE, html: `<p>${TITLE}</p><a href="${PAGE}">Eve</a>` }],
  ["a post", { subject: "Post by Eve", text: `${TITLE} ${PAGE}` }],
  ["a title alone", { subject: "", text: `${TITLE}\n${PAGE}` }],
  ["a title that is a link", { subject: "", html: `<a href="${PAGE}">${TITLE}</a>` }],
  ["a title above the bare name of a site", { subject: "", text: `${TITLE}\nevil.com` }],
  ["a post and a full stop", { subject: "Post by Eve", text: `${TITLE} (${PAGE}).` }],
  ["a post above the line of an app", { subject: "", text: `${TITLE} ${PAGE}\nSent with Eve's app` }],
  ["more addresses", { subject: "", text: `${PAGE}/b ${TITLE} ${PAGE}/c ${PAGE}` }],
  ["an address without https", { subject: "", text: `${TITLE} www.example.net/a` }],
  ["an address without www", { subject: "", text: `${TITLE} example.org/a` }],
  ["the name of a site", { subject: "", text: `${TITLE} www.example.net` }],
  ["an address of an app", { subject: TITLE, text: `${TITLE}\nzed+app://a` }],
  ["a place on a map", { subject: TITLE, text: `${TITLE}\ngeo:1,2` }],
  ["an address above a name", { subject: TITLE, text: `${PAGE}\n\nAda` }],
  ["a title above words of her own", { subject: TITLE, text: `${TITLE}\n${PAGE}\n\nHave a look at this` }],
];

/** Words follow on the line of the address, or may do so. */
const AMID: [name: string, text: string][] = [
  ["in a sentence", `Add ${PAGE}/a/long/way/to/go to my calendar`],
  ["before words of an app", `7.43 pda:/ ${TITLE}  ${PAGE} 复制此链接，打开Dou音搜索，直接观看视频！`],
  ["before words of an app and below others", `${TITLE} ${PAGE} 复制后\n打开【小红书】查看笔记！`],
  ["before a title", `${PAGE} ${TITLE}`],
  ["before a tag", `${TITLE} ${PAGE} #lunch`],
  ["before an account", `${TITLE} ${PAGE} via @eve`],
  ["before a picture", `${PAGE} 😀\n${TITLE}`],
  ["in brackets", `${TITLE} (${PAGE}) on the News app`],
  ["without https", `${TITLE} www.example.net/a on the News app`],
  ["below another one at the end of its line", `${TITLE}\n${PAGE}\nSee ${PAGE}/b as well`],
  ["that words are glued to", `${TITLE}${PAGE}，复制此链接`],
  ["on a line that may have been broken", `${PAGE}/${"a-long-way/".repeat(4)}\n${TITLE}`],
];

/** Some programs write the address first, and what the page says below it. */
const FIRST: [name: string, mail: RoomMail][] = [
  ["an article below its address", { subject: "News", text: `${PAGE}\n\n${TITLE}\n@calendar\n${TITLE}` }],
  ["an article below, in HTML", { html: `<p><a href="${PAGE}">${PAGE}</a></p><p>@calendar<br>${TITLE}</p>` }],
  ["a comment below its address", { text: `${PAGE}\n@calendar ${TITLE}` }],
];

/** As many programs put it there, without a line of dashes. */
const SIGNATURE = "\n\nAda Lovelace\nChief Engineer, Example Ltd\n+44 20 7946 0000";

describe("a mail with a web address", () => {
  test.each([...PAGES, ...AMID.map(([name, text]): [string, RoomMail] => [`an address ${name}`, { text }])])(
    "of %s changes nothing by its words alone, and the answer says where the target goes",
    async (_name, mail) => {
      await using room = await toolRoom([[create()], "Done."]);
      await send(room, mail);
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([ANSWER]);
    },
  );

  // The bare name of a site is an address where the text ends in it.
  const scheming = PAGES.filter(([, { text = "", html }]) => html !== undefined || text.includes("://"));
  test.each([...scheming, ...FIRST])(
    "of %s has no target below it either, but in an answer",
    async (_name, mail) => {
      await using room = await toolRoom([[create()], "Done.", [create()], "Done.", [create()], "Done."]);
      const { text = "", html } = mail;
      const [, above = "", rest = ""] = /^(.*[./]\S*)(.*)$/s.exec(text) ?? [];
      const words =
        html === undefined ? { text: `${above}\n\n@calendar${rest}` } : { html: `${html}<p>@calendar</p>` };
      await send(room, { ...mail, ...words });
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([ANSWER]);
      await answer(room, { ...mail, ...words });
      await answer(room, {
        text: "@calendar\n\nOn Mon, 1 Jan 2024 at 10:00, Inbox wrote:\n> Answer this mail.",
      });
      expect(made(room)).toEqual(["create_event", "create_event"]);
      expect(await warnings(room)).toEqual([]);
    },
  );

  test.each(AMID)("%s has no target on a line below, in an answer either", async (_name, text) => {
    await using room = await toolRoom([[create()], "Done."]);
    await answer(room, { text: `${text}\n\n@calendar\n${TITLE}` });
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({ target: null });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([BELOW]);
  });

  test.each([
    ["Post by Eve on X", `@calendar ${TITLE} ${PAGE}`],
    ["", `@calendar\n${TITLE}\n${PAGE}`],
    ["", `@calendar\n\n${TITLE} ${PAGE}`],
    ["", `@calendar: ${TITLE}\n\n${PAGE}`],
    ["", `@calendar\n${PAGE}`],
    ["", `@calendar ${PAGE}`],
    [`@calendar ${TITLE}`, `@calendar\n${TITLE}\n${PAGE}`],
    ["@calendar lunch", PAGE],
    ["", `@calendar ${TITLE}. ${"It is long. ".repeat(600)}\n${PAGE}`],
    ["", `@calendar ${TITLE} ${PAGE}\n\nOn Mon, Eve <eve@example.net> wrote:\n> Lunch?`],
    ["", `${PAGE}/b\n\n@calendar\n\n${PAGE}`],
    ["", `Shared via @calendar\n${PAGE}`],
  ])("has no target above or before it, and says where: %j, %j", async (subject, text) => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
    for (const [hand, words] of [
      [send, ANSWER],
      [answer, BELOW],
    ] as const) {
      await hand(room, { subject, text });
      expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({ target: null });
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([words]);
    }
  });

  test("names the target that it leaves out, and why, in the answer and at the call that is blocked", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    await send(room, { subject: "", text: `@calendar ${TITLE} ${PAGE}` });
    const steps: { output: string }[] = JSON.parse((await room.newest()).steps);
    const said = steps.map(({ output }) => output);
    expect(said).toContain(TARGET_LEFT_OUT);
    expect(said).toContain(
      "create_event may change something, and @mcp:calendar, with which the message begins, does not count, as it may stand in what this mail shares with the web address in it.",
    );
  });

  test.each([
    ["right below", "\n@calendar"],
    ["below an empty line", "\n\n@calendar"],
    ["before words", `\n\n@calendar ${TITLE}`],
    ["with a flag", "\n\n@calendar --lang=French"],
    ["with a stop", "\n\n@Calendar:\nPut it in"],
    ["below words", `\n\n${TITLE}, please.\n\n@calendar`],
    ["between words", `\n\n${TITLE}.\n@calendar \nThanks`],
    ["above a signature", `\n\n@calendar${SIGNATURE}`],
    ["below an account that is none", `\n\nAda\n@ada\n@calendar`],
    ["above a site", "\n\n@calendar\n\nAda\nwww.example.com\nLondon"],
    ["above a mail address", "\n\n@calendar\n\nAda\nada@example.com"],
  ])("has its target %s in an answer", async (_where, below) => {
    await using room = await toolRoom([[create()], "Done."]);
    await answer(room, { subject: "Look", text: `${TITLE}\n${PAGE}${below}` });
    expect(made(room)).toEqual(["create_event"]);
    expect(await warnings(room)).toEqual([]);
  });

  test.each(["(%).", "<%>", "“%”", "「%」。", "[A page](%)"])(
    "ends its line with what closes a sentence or brackets: %s",
    async (around) => {
      await using room = await toolRoom([[create()], "Done."]);
      await answer(room, { text: `${TITLE} ${around.replace("%", PAGE)}\n\n@calendar` });
      expect(made(room)).toEqual(["create_event"]);
    },
  );

  test("may be long, and its line broken behind it, where no empty line follows", async () => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
    const address = `${PAGE}/${"a-long-way/".repeat(30)}`;
    await answer(room, { text: `${address}\n@calendar\n${TITLE}` });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([BELOW]);
    await answer(room, { text: `${address}\n\n@calendar\n${TITLE}` });
    expect(made(room)).toEqual(["create_event"]);
  });

  test("is no plain word either where its text is longer than anybody types", async () => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
    await send(room, { text: `${TITLE}. ${"It is long. ".repeat(600)}` });
    expect(made(room)).toEqual([]);
    await send(room, { text: `@calendar ${TITLE}. ${"It is long. ".repeat(600)}` });
    expect(made(room)).toEqual(["create_event"]);
  });

  test("has no target in code, or in an account in a sentence", async () => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
    await answer(room, { text: `${PAGE}\n\nWhat is this?\n\`\`\`\n@calendar\n\`\`\`` });
    await answer(room, { text: `${PAGE}\n\nWhat does\n@calendar do?` });
    expect(made(room)).toEqual([]);
  });

  test.each<[string, RoomMail]>([
    ["the address alone", { text: PAGE }],
    ["an address above words", { text: `${PAGE}\n\nWhat do you think of this one?` }],
    ["an address in a sentence", { text: `Please read ${PAGE} for me` }],
    ["an address in HTML", { html: `<div><a href="${PAGE}">${PAGE}</a></div><p>Ada</p>` }],
  ])("has its subject for material beside %s", async (_what, mail) => {
    await using room = await toolRoom([]);
    await send(room, { ...mail, subject: TITLE });
    const { above, inside } = asked(room);
    expect(above).not.toContain("lunch");
    expect(inside).toContain(`Subject: ${TITLE}`);
  });

  test.each([
    ["", `Summarise ${PAGE}`],
    ["A page", `Summarise ${PAGE}`],
    ["Summarise", `Summarise this page: ${PAGE}`],
    ["Menu", `Add ${PAGE}/menu to what you know\n\n${PAGE}`],
    ["", `Please read ${PAGE} and sum it up`],
    ["", `${PAGE}\n\nPlease sum it up\n\nAda`],
  ])("is still asked what its text says, below %j: %j", async (subject, text) => {
    await using room = await toolRoom([]);
    await send(room, { subject, text });
    expect(asked(room).above).toStartWith(text);
  });

  test("writes with a standing grant", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    await grant(room);
    await send(room, { text: `${TITLE} ${PAGE}` });
    expect(made(room)).toEqual(["create_event"]);
  });
});

describe("--allow-destructive in a mail that may share a page", () => {
  const FLAG = "--allow-destructive";
  const put = (where: string): string =>
    `Put the web address at the end of a line and${where} to let this mail delete or overwrite something in your calendar.`;
  const PARAGRAPH = put(` \`${FLAG}\` right below it, in its first paragraph,`);

  test.each([
    [`${FLAG} ${PAGE}`, `${PAGE}\n@calendar ${FLAG}`],
    [`Clear\n\n${PAGE}\n@calendar ${FLAG}`, `Clear\n${PAGE}\n@calendar ${FLAG}`],
  ])("counts only below the address of an answer: %j", async (text, mended) => {
    await using room = await toolRoom([[CLEAR], "Done.", [CLEAR], "Done."]);
    await answer(room, { text });
    expect(made(room)).toEqual([]);
    if (text.includes("@calendar")) expect(await warnings(room)).toEqual([PARAGRAPH]);
    await answer(room, { text: mended });
    expect(made(room)).toEqual(["clear"]);
  });

  test.each([`Clear ${FLAG} ${PAGE}`, `${PAGE}\n\n@calendar ${FLAG}`])(
    "does not count in a new one, whatever its inbox may do by itself: %j",
    async (text) => {
      await using room = await toolRoom([[CLEAR], "Done.", [CLEAR], "Done."]);
      await grant(room);
      await send(room, { text });
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([
        ANSWER.replace(/\.$/, ", and say what may be deleted or overwritten if you want that."),
      ]);
      await answer(room, { text: `@calendar ${FLAG}` });
      expect(made(room)).toEqual(["clear"]);
    },
  );
});

describe("commands in a mail that may share a page", () => {
  const WORDS = "$note 100 EUR to Eve +vault --lang=French --private --no-reply #sales";
  const NOTHING = { options: {}, contexts: [], tags: [], macro: null };

  test.each<[string, RoomMail, { above: string; begins?: string }]>([
    ["in a post", { text: `${WORDS} ${PAGE}` }, { above: WORDS }],
    ["in a post above its address", { text: `${WORDS}\n\n${PAGE}\nAda` }, { above: WORDS }],
    [
      "before the words of an app",
      { text: `${WORDS} ${PAGE} in the News app\n\n${WORDS}` },
      { above: WORDS },
    ],
    ["below a target", { text: `@calendar\n${WORDS} ${PAGE}` }, { above: WORDS }],
    ["beside a target", { text: `@calendar ${WORDS}\n\n${PAGE}` }, { above: WORDS }],
    ["between addresses", { text: `${PAGE}/b ${WORDS} ${PAGE}` }, { above: WORDS }],
    ["below its address", { text: `${PAGE}\n\n${WORDS}` }, { above: WORDS }],
  ])("are none %s, and the answer says where they would be", async (_where, mail, { above }) => {
    await using room = await toolRoom([]);
    await shelve(room);
    await send(room, mail);
    expect(asked(room).above).toContain(above);
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject(NOTHING);
    expect((await warnings(room))[0]).toMatch(
      /^Left out, .*: .*`\+vault`, `--lang`, `--private`, `--no-reply`\. Answer this mail with what you want of it\.$/,
    );
    expect(await room.newest()).toMatchObject({ reply_status: "sent" });
  });

  test("count behind the address of an answer, and what is above it goes into a macro", async () => {
    await using room = await toolRoom([]);
    await shelve(room);
    await answer(room, { text: `Lunch with Eve ${PAGE}\n\n$note +vault --lang=French #sales` });
    const { command } = await room.newest();
    expect(JSON.parse(command ?? "{}")).toMatchObject({
      options: { lang: "French" },
      contexts: ["vault"],
      tags: ["sales"],
      macro: "note",
    });
    expect(asked(room).above).toStartWith(`Note: Lunch with Eve ${PAGE}`);
    expect(await warnings(room)).toEqual([]);
  });

  test("that have less done count anywhere", async () => {
    await using room = await toolRoom([]);
    await send(room, { text: `Add --dry-run ${PAGE}\n@calendar` });
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({ options: { "dry-run": true } });
    expect(room.model.requests).toBeEmpty();
    await send(room, { text: `--no-tools\nAdd ${PAGE}\n@calendar` });
    expect(room.model.requests.at(-1)?.body?.tools ?? []).toBeEmpty();
  });

  test("choose no knowledge above the address of an answer where some words are surely its author's", async () => {
    await using room = await toolRoom([]);
    for (const slug of ["quagga", "okapi", "zebra", "tapir"])
      await room.owner.post("/contexts", { title: slug, slug, kind: "knowledge", body: `A ${slug}.` });
    await send(room, { text: `Tell of the quagga and of the okapi\n${PAGE}` });
    expect(told(room)).toEqual(["quagga", "okapi"]);
    await answer(room, { text: `Tell of the quagga and of the okapi\n${PAGE}\nThe tapir is what I mean` });
    expect(told(room)).toEqual(["tapir"]);
    await send(room, { text: "Tell of the quagga" });
    expect(told(room)).toEqual(["quagga"]);
  });
});

describe("places in a mail that may share a page", () => {
  const SITE = "https://acme.example/site";
  const NAME = `Put \`${SITE}\` at the end of a line, below any other web address and above all that you want of it, to let this mail go there.`;
  const BOB = "bob@example.org";
  const NAME_BOB = `Put the web address at the end of a line and, after an empty line, the place \`${BOB}\` below it to let this mail go there.`;
  const visit = [create({ url: SITE })];
  const invite = [create({ who: BOB })];

  test.each<[string, RoomMail]>([
    ["a post", { text: `See ${SITE} and ${BOB}\n${PAGE}` }],
    ["a post above an address", { text: `See ${SITE} and ${BOB}\n\nHave a look: ${PAGE}` }],
    ["a title", { subject: `Go to ${SITE} or ${BOB}`, text: `Add ${PAGE}` }],
    ["a quote", { subject: "A page", text: `“See ${SITE} and ${BOB}”\n${PAGE}` }],
  ])("are none in %s, and the answer says where they would be", async (_what, mail) => {
    await using room = await toolRoom([visit, invite, "Done.", visit, "Done.", invite, "Done."]);
    const text = `${mail.text}\n\n@calendar`;
    await answer(room, { ...mail, text });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([NAME.replace("` at", `\` and \`${BOB}\` at`)]);
    await answer(room, { ...mail, text: `${mail.text}\n${SITE}\n\n@calendar` });
    await answer(room, { ...mail, text: `${text} Invite ${BOB}` });
    expect(made(room)).toEqual(["create_event", "create_event"]);
  });

  test("that are no web address are named below it", async () => {
    await using room = await toolRoom([invite, "Done."]);
    await answer(room, { text: `Invite ${BOB} to ${PAGE}\n\n@calendar` });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([NAME_BOB]);
  });

  test.each([`${PAGE}\n\nInvite ${BOB} to ${SITE}/b`, `Invite ${BOB} to ${SITE}/b\n\n${PAGE}`])(
    "are named in an answer to it, whatever its inbox may do by itself: %j",
    async (text) => {
      await using room = await toolRoom([invite, visit, "Done.", invite, "Done.", visit, "Done."]);
      await grant(room);
      await send(room, { text });
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([
        `Answer this mail with \`${BOB}\` and \`${SITE}\` to let it go there.`,
      ]);
      await answer(room, { text: `It is ${BOB}` });
      await answer(room, { text: SITE });
      expect(made(room)).toEqual(["create_event", "create_event"]);
    },
  );

  test.each<[string, RoomMail]>([
    ["above", { text: `Summarise this ${PAGE}` }],
    ["in a sentence", { text: `Please read ${PAGE} and sum it up` }],
    ["before words of an app", { text: `${TITLE} ${PAGE} 复制此链接` }],
    ["above a target", { text: `${TITLE}\n${PAGE}\n\n@calendar` }],
    ["above a signature with a site", { text: `${TITLE}\n${PAGE}\n\nAda\nwww.example.com\nLondon` }],
    ["below a title with an address", { subject: "", text: `“${SITE} and more”\n${PAGE}` }],
    ["below a title that is the subject", { subject: `See ${SITE}`, text: `See ${SITE}\n${PAGE}` }],
    ["alone", { subject: "A page", text: PAGE }],
  ])("the page itself is one, its address %s", async (_where, mail) => {
    const fetch = (url: string) => [{ name: "calendar__fetch_url", args: { url } }];
    await using room = await toolRoom([fetch(PAGE), fetch(SITE), "Done."], {
      served: [{ name: "fetch_url", annotations: { readOnlyHint: true }, run: () => "A page." }],
    });
    await send(room, mail);
    expect(room.tools.calls.map(({ args }) => args)).toEqual([{ url: PAGE }]);
  });

  test("several addresses above a signature name no more than the last", async () => {
    await using room = await toolRoom([visit, "Done."]);
    await answer(room, { subject: "", text: `${SITE} ${PAGE}\n\n@calendar${SIGNATURE.repeat(3)}` });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([NAME]);
  });
});

describe("a mail without a web address", () => {
  test("carries commands, and names places, wherever they stand", async () => {
    await using room = await toolRoom([[create({ who: "bob@example.org" })], "Done."]);
    await shelve(room);
    await send(room, { text: "$note +vault --lang=French Add bob@example.org to it #sales" });
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({
      options: { lang: "French" },
      contexts: ["vault"],
      tags: ["sales"],
      macro: "note",
    });
    expect(made(room)).toEqual(["create_event"]);
  });

  test.each<[string, RoomMail]>([
    ["with nothing but a subject", { subject: "Add milk to the shopping list", text: "" }],
    ["about a repository", { text: "please file an issue in acme/site: the form is broken" }],
    ["that ends in the name of a file", { text: "Put lunch into my calendar as notes.md" }],
    ["that ends in the name of a site", { text: "Put lunch into my calendar, booked at booking.com" }],
    ["that asks about a site", { text: "Did I book at booking.com? Put lunch (see booking.com/) into it" }],
    ["with the name of a folder", { text: "Put lunch into my calendar, see src/notes.md and and/or 1.5/2" }],
    ["that ends in a mail address", { text: "Put lunch into my calendar with bob@example.org" }],
    ["that ends in a tag", { text: "Put lunch into my calendar #work" }],
    ["that quotes a word", { subject: "Lunch", text: 'Put "Lunch" into my calendar' }],
    ["whose text says its subject again", { subject: TITLE, text: `${TITLE} - on Monday` }],
    ["that says how it was sent", { text: `${TITLE}\nSent from my iPhone` }],
    ["with a subject above a signature", { subject: TITLE, text: SIGNATURE }],
    ["with a site in a signature", { subject: TITLE, text: "Ada\nwww.example.com\n+44 20 7946 0000" }],
    ["above a signature with a site", { text: `${TITLE}\n\nRegards\nAda\nwww.example.com | London` }],
  ])("%s is carried out", async (_name, mail) => {
    await using room = await toolRoom([[create()], "Done."]);
    await send(room, mail);
    expect(made(room)).toEqual(["create_event"]);
  });
});

describe("the subject of a mail with files", () => {
  const ics = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY:x\r\nEND:VEVENT\r\nEND:VCALENDAR";
  const files: [filename: string, content_type: string][] = [
    ["document.pdf", "application/octet-stream"],
    ["event.ics", "text/calendar"],
    ["contact.vcf", "text/vcard"],
    ["@calendar Put lun.pdf", "application/octet-stream"],
    ["Screenshot_1.png", "application/octet-stream"],
  ];

  test.each(files)(
    "names no target beside %s, and the answer says what would",
    async (filename, content_type) => {
      await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
      const attachments = [{ filename, content_type, content: ics }];
      await send(room, { subject: `@calendar ${TITLE}`, text: "", attachments });
      expect(asked(room).above).toStartWith(`@calendar ${TITLE}`);
      expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({ target: null });
      expect(made(room)).toEqual([]);
      expect(await warnings(room)).toEqual([IN_TEXT]);
      await send(room, { subject: TITLE, text: "@calendar", attachments });
      expect(made(room)).toEqual(["create_event"]);
    },
  );

  test("is an instruction, and the answer says where a target is named", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    const attachments = [{ filename: "event.ics", content_type: "text/calendar", content: ics }];
    await send(room, { subject: "Put this into my calendar", text: "Sent from my iPhone", attachments });
    expect(asked(room).above).toStartWith("Put this into my calendar");
    expect(await warnings(room)).toEqual([IN_TEXT]);
  });

  test("allows nothing to be deleted", async () => {
    await using room = await toolRoom([[CLEAR], "Done."]);
    const attachments = [{ filename: "a.txt", content: "x" }];
    await send(room, { subject: "@calendar Clear it --allow-destructive", text: "", attachments });
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({ target: null, options: {} });
    expect(made(room)).toEqual([]);
    expect(await warnings(room)).toEqual([
      IN_TEXT.replace(/\.$/, ", and say what may be deleted or overwritten if you want that."),
    ]);
  });

  test.each([
    ["alone", ""],
    ["above a target", "@calendar"],
    ["above the line of a telephone", "Sent from my iPhone"],
  ])("names no place and carries no command %s, and the answer says what would", async (_where, text) => {
    const SITE = "https://acme.example/site";
    await using room = await toolRoom([[create({ url: SITE })], "Done.", [create({ url: SITE })], "Done."]);
    await grant(room);
    await shelve(room);
    const attachments = [{ filename: "a.txt", content: "x" }];
    const subject = `$note Add ${SITE} --lang=French +vault`;
    await send(room, { subject, text, attachments });
    expect(made(room)).toEqual([]);
    expect(asked(room).above).toStartWith(subject);
    expect(JSON.parse((await room.newest()).command ?? "{}")).toMatchObject({
      options: {},
      contexts: [],
      macro: null,
    });
    const words = await warnings(room);
    expect(words).toContain(
      text === "@calendar"
        ? `Name the place \`${SITE}\` in its text to let this mail go there.`
        : `Answer this mail with \`${SITE}\` to let it go there.`,
    );
    if (text !== "@calendar")
      expect(words).toContain(
        "Left out, as it may be the title of a file: `$note`, `+vault`, `--lang`. Write what you want of it in the text of the mail.",
      );
    await send(room, { subject, text: `@calendar Add ${SITE} --lang=French`, attachments });
    expect(made(room)).toEqual(["create_event"]);
  });

  test("names no target that is none, either", async () => {
    await using room = await toolRoom([]);
    const attachments = [{ filename: "a.txt", content: "x" }];
    await send(room, { subject: "@Bob asks what this is --format=text", text: "", attachments });
    expect(asked(room).above).toStartWith("@Bob asks what this is");
  });

  test("is a target where there is no file, and the text is one beside a file", async () => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done."]);
    await send(room, { subject: `@calendar ${TITLE}`, text: "" });
    await send(room, { text: `@calendar ${TITLE}`, attachments: [{ filename: "a.txt", content: "x" }] });
    expect(made(room)).toEqual(["create_event", "create_event"]);
  });
});

describe("the subject that a mail program wrote", () => {
  test.each([
    "Read: ",
    "Accepted: ",
    "Automatic reply: ",
    "Recall: ",
    "Automatische Antwort: ",
    "開封済み: ",
  ])("%j is no instruction", async (mark) => {
    await using room = await toolRoom([]);
    await send(room, { subject: `=?utf-8?b?${Buffer.from(mark + TITLE).toString("base64")}?=`, text: "" });
    const { above, inside } = asked(room);
    expect(above).not.toContain(TITLE);
    expect(inside).toContain(TITLE);
  });
});

/** A macro and a document to name. */
async function shelve({ owner }: ToolRoom): Promise<void> {
  await owner.post("/contexts", { title: "Note", slug: "note", kind: "command", body: "Note: {{input}}" });
  await owner.post("/contexts", { title: "Vault", slug: "vault", kind: "knowledge", body: "The vault." });
}

/** Which documents of knowledge the newest run was told. */
function told({ model }: ToolRoom): string[] {
  const all = JSON.stringify(model.requests.at(-1)?.body?.messages);
  return ["quagga", "okapi", "zebra", "tapir"].filter((slug) => all.includes(`A ${slug}.`));
}

async function send(room: ToolRoom, mail: RoomMail): Promise<void> {
  // Ids of one millisecond have no order.
  room.clock.advance("1s");
  expect(await room.send(mail)).toStartWith("250 ");
  await room.drain();
  expect((await room.newest()).state).toBe("done");
}

/** The same of a mail that answers one, as no program that shares a page does. */
async function answer(room: ToolRoom, mail: RoomMail): Promise<void> {
  await send(room, { ...mail, headers: { ...freshId().headers, "In-Reply-To": "<one@example.net>" } });
}

async function grant({ owner, inbox }: ToolRoom): Promise<void> {
  await owner.patch(`/inboxes/${inbox.id}`, {
    scope: { targets: ["mcp:calendar"], autonomous: ["mcp:calendar"] },
  });
}

/** What the newest mail had the model asked first, above its fence and inside. */
function asked(room: ToolRoom): { above: string; inside: string } {
  const all = room.model.requests.map(({ body }) => body?.messages ?? []);
  const first = all.findLast((messages) => messages.at(-1)?.role === "user")?.at(-1)?.content ?? "";
  const [above = "", inside = ""] = first.split(/<<DATA \w+>>/);
  return { above, inside };
}

async function warnings(room: ToolRoom): Promise<string[]> {
  const steps = JSON.parse((await room.newest()).steps) as { type: string; output: string }[];
  const said = steps.filter(({ type }) => type === "warning").map(({ output }) => withoutAsking(output));
  return said.filter((words) => words !== "" && !ONLY_TARGET_LEFT_OUT.test(words));
}

/** Names of the tools that were called. */
function made({ tools }: ToolRoom): string[] {
  return tools.calls.map(({ name }) => name);
}
