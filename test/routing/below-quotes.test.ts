import { describe, expect, test } from "bun:test";
import { withoutAsking } from "../support/asking.ts";
import type { RoomMail } from "../support/mailroom.ts";
import { create, toolRoom, type ToolRoom } from "../support/tool-room.ts";

const HEAD = "On Fri, May 3, 2024 at 10:00 AM Eve <eve@example.net> wrote:";
const QUOTE = `${HEAD}\n> Shall we have lunch?`;
const ABOVE =
  "Write all that you want above the quoted text and begin with `@calendar` to let this mail change your calendar.";
const ANSWER = { "In-Reply-To": "<1@example.net>" };

describe("words below a quote that only marks end", () => {
  test("are the instruction, and name no target", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    await send(room, { text: `${QUOTE}\n\n@calendar put it down for Monday` });
    expect(room.tools.calls).toEqual([]);
    expect(await room.newest()).toMatchObject({ instruction: "@calendar put it down for Monday" });
    expect((await warnings(room)).map(withoutAsking)).toEqual([
      "Left out, as it may stand in what this mail quotes: `@calendar`. Write all that you want above the quoted text.",
      "",
      ABOVE,
    ]);
  });

  test("carry no flag and no context, and the answer says so", async () => {
    await using room = await toolRoom(["Done."]);
    const mail = { title: "Vault", slug: "vault", kind: "knowledge", body: "The vault." };
    await room.owner.post("/contexts", mail);
    await send(room, { text: `${QUOTE}\n\nAnswer this. +vault --no-reply` });
    expect(await warnings(room)).toEqual([
      "Left out, as it may stand in what this mail quotes: `+vault`, `--no-reply`. Write all that you want above the quoted text.",
    ]);
    expect((await room.newest()).reply_status).not.toBe("none");
  });

  test("are material below a greeting that names a target, which then counts", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    await send(room, { text: `@calendar add this\n\n${QUOTE}\n\nOn Tuesday, says Eve.` });
    expect(room.tools.calls.map(({ name }) => name)).toEqual(["create_event"]);
    expect(await room.newest()).toMatchObject({ instruction: "@calendar add this" });
  });

  test("name none where the HTML has a quote within what it does not wrap, either", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    const head = HEAD.replace("<", "&lt;");
    const html = `<div>${head}</div><blockquote>Hello Ada</blockquote><div>@calendar put it down</div>`;
    await send(room, { html });
    expect(room.tools.calls).toEqual([]);
  });

  test("name it where the HTML wraps the quote", async () => {
    await using room = await toolRoom([[create()], "Done."]);
    const head = HEAD.replace("<", "&lt;");
    const html = `<div class="moz-cite-prefix">${head}</div><blockquote type="cite">Shall we have lunch?</blockquote><p>@calendar put it down</p>`;
    await send(room, { text: `${QUOTE}\n\n@calendar put it down`, html });
    expect(room.tools.calls.map(({ name }) => name)).toEqual(["create_event"]);
  });
});

async function send(room: ToolRoom, mail: RoomMail): Promise<void> {
  expect(await room.send({ subject: "Re: Lunch", headers: ANSWER, ...mail })).toStartWith("250 ");
  await room.drain();
  expect((await room.newest()).state).toBe("done");
}

async function warnings(room: ToolRoom): Promise<string[]> {
  const steps = JSON.parse((await room.newest()).steps) as { type: string; output: string }[];
  return steps.filter(({ type }) => type === "warning").map(({ output }) => output);
}
