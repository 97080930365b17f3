import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { toolRoom, type ToolRoom, type Wanted } from "../support/tool-room.ts";

const JSON_TYPE = { "content-type": "application/json" };
const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
const LOOK: Wanted[] = [{ name: "office__search_mail", args: { query: "code" } }];
const QUESTION = "What is the code in the newest mail?";

const fileOf = (name: string, bytes: string | Uint8Array) => ({
  type: "resource",
  resource: {
    uri: `file:///${name}`,
    mimeType: "application/octet-stream",
    blob: Buffer.from(bytes).toString("base64"),
  },
});

/** An inbox with a tool that reads the owner's mailbox, in which a sign-in code has just come; the model hands on what it finds. */
async function mailboxRoom(of: (mail: string) => unknown = (mail) => mail) {
  const mails: string[] = [];
  const served = [
    {
      name: "search_mail",
      description: "Searches the mailbox.",
      annotations: { readOnlyHint: true },
      run: () => of(mails.at(-1) ?? ""),
    },
  ];
  const tell = ({ messages }: { messages: { content?: unknown }[] }) =>
    String(messages.at(-1)?.content)
      .match(/(?<!\w)\d{3} ?\d{3}(?!\w)/g)
      ?.join(" and ") ?? "none";
  const inbox = { allowlist_senders: ["lea@example.org"] };
  const talks = Array.from({ length: 3 }, () => [LOOK, tell]).flat();
  const room = await toolRoom(talks, { label: "Office", served, inbox });
  const post = (path: string, body: object) =>
    room.request(path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) });
  await post("/auth/request-code", { email: "ada@example.com" });
  await room.drain();
  const { raw } = (await room.outgoing()).at(-1) ?? {};
  mails.push((await simpleParser(Buffer.from(raw ?? ""))).text ?? "");
  const [code = ""] = /\d{6}/.exec(mails[0] ?? "") ?? [];
  const signIn = async (with_code: string) =>
    (await post("/auth/verify", { email: "ada@example.com", code: with_code })).status;
  /** What a call by a key comes to that has the tool asked. */
  const ask = async () => {
    const sent = room.owner.post("/v1/messages", { instruction: QUESTION });
    await room.drain();
    const { body } = await sent;
    return { ...body, steps: (await room.newest()).steps };
  };
  return { room, code, signIn, ask };
}

async function answerTo(room: ToolRoom, address: string): Promise<string> {
  await room.drain();
  const raw = (await room.outgoing()).findLast(({ envelope_to }) => envelope_to === address)?.raw;
  return (await simpleParser(Buffer.from(raw ?? ""))).text ?? "";
}

describe("a tool that reads the owner's mailbox tells no code that signs in to the account", () => {
  test("to a listed sender", async () => {
    const { room, code, signIn } = await mailboxRoom();
    await using _room = room;
    await room.send({ from: "Lea <lea@example.org>", subject: "Code", text: QUESTION });
    const said = await answerTo(room, "lea@example.org");
    expect(said).toContain("none");
    expect(JSON.stringify([said, (await room.newest()).steps])).not.toContain(code);
    // One that was found in what a tool said signs in no more, whoever has it.
    expect(await signIn(code)).toBe(401);
  });

  test("to a key, in two groups of digits", async () => {
    const { room } = await mailboxRoom((mail) => mail.replaceAll(/(\d{3})(\d{3})/g, "$1 $2"));
    await using _room = room;
    const sent = room.owner.post("/v1/messages", { instruction: QUESTION });
    await room.drain();
    expect((await sent).body.result).toBe("none");
  });

  const inBase64 = (text: string, width = 76) =>
    (
      Buffer.from(text)
        .toString("base64")
        .match(new RegExp(`.{1,${width}}`, "g")) ?? []
    ).join("\r\n");
  const PACKED: [string, (mail: string) => string][] = [
    ["base64url in JSON", (mail) => JSON.stringify({ data: Buffer.from(mail).toString("base64url") })],
    ["the lines of a mail", (mail) => `Content-Transfer-Encoding: base64\r\n\r\n${inBase64(mail)}\r\n`],
    [
      "a mail that is packed twice",
      (mail) => JSON.stringify({ raw: btoa(`To: ada\r\n\r\n${inBase64(mail)}`) }),
    ],
    ["base64 behind a word", (mail) => `base64\n${inBase64(mail)}`],
    ["percents", (mail) => `body=${mail.replaceAll(" ", "%20").replace(/(?=\d{6})/, "%20")}`],
    ["escapes of JSON", (mail) => mail.replace(/(?=\d{6})/, String.raw`\u00a0`)],
    ["quoted-printable", (mail) => mail.replace(/(?=\d{6})/, "=20")],
  ];
  test.each(PACKED)("in %s", async (_which, packed) => {
    const { room, code } = await mailboxRoom(packed);
    await using _room = room;
    const sent = room.owner.post("/v1/messages", { instruction: QUESTION });
    await room.drain();
    await sent;
    const { steps } = await room.newest();
    expect(steps).toContain("[sign-in code left out");
    const forms = [0, 1, 2].map((at) => btoa(`${"x".repeat(at)}${code}`).slice(at === 0 ? 0 : 4, 8));
    for (const form of [code, ...forms]) expect(steps).not.toContain(form);
  });

  test.each([
    ["in a text", (mail: string) => fileOf("mail.txt", mail), "stands in it", 401],
    ["in a mail", (mail: string) => fileOf("mail.html", `<p>${mail}</p>`), "stands in it", 401],
    ["in what is no text", () => fileOf("mail.png", PICTURE), "in ten minutes", 200],
  ])("as a file: %s", async (_which, found, why, signed) => {
    const { room, code, signIn, ask } = await mailboxRoom((mail) => ({ content: [found(mail)] }));
    await using _room = room;
    const refused = await ask();
    expect(refused.attachments).toEqual([]);
    expect(refused.steps).toContain(why);
    expect(await signIn(code)).toBe(signed);
    expect((await ask()).attachments).toHaveLength(1);
  });

  test("the control: it tells codes of others, and those that sign in no more", async () => {
    const { room, code, signIn } = await mailboxRoom((mail) => `${mail} 000111`);
    await using _room = room;
    const other = code === "000111" ? [] : ["000111"];
    await signIn(code);
    const sent = room.owner.post("/v1/messages", { instruction: QUESTION });
    await room.drain();
    expect((await sent).body.result).toBe([code, ...other].join(" and "));
  });
});

describe("nobody finds the code by what is left out of what a tool says, as", () => {
  const numbersFrom = (first: number, count: number) =>
    Array.from({ length: count }, (_, nth) => String((1_000_000 + first + nth) % 1_000_000).padStart(6, "0"));
  const HALF = 250;

  test.each<[string, (list: string) => unknown]>([
    ["a text", (list) => list],
    ["a file", (list) => ({ content: [fileOf("list.txt", list)] })],
    ["base64", (list) => Buffer.from(list).toString("base64")],
  ])("one that was found signs in no more: %s", async (_form, said) => {
    const { room, code, signIn, ask } = await mailboxRoom(() => said(list));
    await using _room = room;
    let list = numbersFrom(Number(code) + 1, HALF).join("\n");
    const before = await ask();
    expect(before.steps).not.toContain("left out");
    list = numbersFrom(Number(code) - 9, HALF).join("\n");
    const found = await ask();
    expect(found.steps).toContain("left out");
    expect(found.steps).toContain("does not count any more");
    expect(await signIn(code)).toBe(401);
    const { body: events } = await room.owner.get("/auth/security-events");
    const shown = events.filter(({ kind }: { kind: string }) => kind === "code_shown");
    expect(shown).toEqual([expect.objectContaining({ api_key: expect.stringContaining("mw_"), times: 1 })]);
    expect(JSON.stringify(events)).not.toContain(code);
  });

  test("where none was found nothing is told, and it goes on signing in", async () => {
    const { room, code, signIn, ask } = await mailboxRoom(() => list.join(" and "));
    await using _room = room;
    const list = numbersFrom(Number(code) + 1, 3);
    expect((await ask()).result).toBe(list.join(" and "));
    expect(await signIn(code)).toBe(200);
  });

  test.each<[string, (list: string) => unknown]>([
    ["a text", (list) => list],
    ["a file", (list) => ({ content: [fileOf("list.txt", list)] })],
  ])("what is too long to be compared is left out with the code and without: %s", async (_form, said) => {
    const { room, code, signIn, ask } = await mailboxRoom(() => said(list));
    await using _room = room;
    let list = numbersFrom(Number(code) - 10, 5_001).join("\n");
    const withCode = await ask();
    list = numbersFrom(Number(code) + 1, 5_001).join("\n");
    const without = await ask();
    const [one, other] = [withCode, without].map(({ steps }) => outputOf(steps));
    expect(one).toContain("might stand in it");
    expect([one, withCode.result, withCode.attachments]).toEqual([
      other,
      without.result,
      without.attachments,
    ]);
    expect(await signIn(code)).toBe(200);
  });

  const outputOf = (steps: string) =>
    (JSON.parse(steps) as { type: string; output?: string }[]).find(({ type }) => type === "tool_call")
      ?.output;
});

test("the hash of a letter's body, or of a part of it, tells no code: nobody knows the rest", async () => {
  const { room, code } = await mailboxRoom();
  await using _room = room;
  const parts = async () => {
    const { raw } = (await room.outgoing()).at(-1) ?? {};
    const { text = "", html, headerLines } = await simpleParser(Buffer.from(raw ?? ""));
    const head = headerLines.map(({ line }) => line).join("\n");
    return { head, bodies: [text, String(html).replaceAll(/<[^>]*>/g, "")] };
  };
  const first = await parts();
  room.clock.advance("2m");
  const again = { email: "ada@example.com" };
  await room.request("/auth/request-code", {
    method: "POST",
    headers: JSON_TYPE,
    body: JSON.stringify(again),
  });
  await room.drain();
  const second = await parts();
  for (const [at, body] of first.bodies.entries()) {
    expect(body).toContain(code);
    const own = body.split(/\s+/).filter((word) => !second.bodies[at]?.includes(word) && word !== code);
    // 27 letters have more than 126 bits, 28 more than 131.
    expect(own).toEqual([expect.stringMatching(/^[a-z]{28}$/)]);
    expect(first.head).not.toContain(own[0] ?? "?");
  }
});
