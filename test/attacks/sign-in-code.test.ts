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
  const room = await toolRoom([LOOK, tell, LOOK, tell], { label: "Office", served, inbox });
  const post = (path: string, body: object) =>
    room.request(path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) });
  await post("/auth/request-code", { email: "ada@example.com" });
  await room.drain();
  const { raw } = (await room.outgoing()).at(-1) ?? {};
  mails.push((await simpleParser(Buffer.from(raw ?? ""))).text ?? "");
  const [code = ""] = /\d{6}/.exec(mails[0] ?? "") ?? [];
  const signIn = async (with_code: string) =>
    (await post("/auth/verify", { email: "ada@example.com", code: with_code })).status;
  return { room, code, signIn };
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
    // The control: it is one that signs in.
    expect(await signIn(code)).toBe(200);
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
    expect(steps).toContain("[sign-in code left out]");
    const forms = [0, 1, 2].map((at) => btoa(`${"x".repeat(at)}${code}`).slice(at === 0 ? 0 : 4, 8));
    for (const form of [code, ...forms]) expect(steps).not.toContain(form);
  });

  const blob = (name: string, bytes: string | Uint8Array) => ({
    type: "resource",
    resource: {
      uri: `file:///${name}`,
      mimeType: "application/octet-stream",
      blob: Buffer.from(bytes).toString("base64"),
    },
  });
  test.each([
    ["in a text", (mail: string) => blob("mail.txt", mail), "stands in it"],
    ["in a mail", (mail: string) => blob("mail.html", `<p>${mail}</p>`), "stands in it"],
    ["in what is no text", () => blob("mail.png", PICTURE), "in ten minutes"],
  ])("as a file: %s", async (_which, fileOf, why) => {
    const { room, code, signIn } = await mailboxRoom((mail) => ({ content: [fileOf(mail)] }));
    await using _room = room;
    const ask = async () => {
      const sent = room.owner.post("/v1/messages", { instruction: QUESTION });
      await room.drain();
      return (await sent).body.attachments.length;
    };
    expect(await ask()).toBe(0);
    expect((await room.newest()).steps).toContain(why);
    await signIn(code);
    expect(await ask()).toBe(1);
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
