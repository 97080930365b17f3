import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { INERT, signedMail } from "./altered.ts";
import { DOUBTFUL_PARTS, sendParts } from "./doubtful.ts";
import { EVES_FILES, afterFile } from "./file-turns.ts";
import { buildWorld, SECRETS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await buildWorld({ office_key: SECRETS.office });
});
afterAll(() => world[Symbol.asyncDispose]());

/** As whoever has a copy of it can. */
function resend(raw: string): Promise<void> {
  const mail_from = "eve@example.net";
  return world.mail({ replayed: true, mail_from, raw: Buffer.from(raw, "latin1") });
}

function sent(): number {
  return world.office.calls.filter(({ name }) => name === "send_mail").length;
}

describe("an order of the owner whose mail was changed on the way, but not in what it says", () => {
  test.each(INERT)(
    "with %s is carried out once, and without what it says not at all",
    async (_, mail, change) => {
      world.reset();
      const raw = signedMail(world, mail);
      const altered = change(raw);
      expect(altered).not.toBe(raw);
      await resend(altered);
      expect(await world.room.newest()).toMatchObject({ authority: "owner", state: "done" });
      expect(sent()).toBe(1);
      // The mail itself, and the copy again.
      await resend(raw);
      await resend(altered);
      expect(sent()).toBe(1);
      world.reset();
      await resend(change(signedMail(world, mail)).replace("send_mail to=", "send_mail TO="));
      expect(sent()).toBe(0);
    },
  );
});

describe("an order of the owner in a mail from the server of her domain", () => {
  test.each(DOUBTFUL_PARTS)("is carried out once without $name, and with it not at all", async (parts) => {
    world.reset();
    await sendParts(world, parts.certain);
    const { auth, authority, state } = await world.room.newest();
    expect({ authority, state }).toEqual({ authority: "owner", state: "done" });
    expect(JSON.parse(auth ?? "{}")).toMatchObject({ spf: "pass", dmarc: "pass", trusted_network: false });
    expect(sent()).toBe(1);
    world.reset();
    await sendParts(world, parts.doubtful);
    expect(await world.room.newest()).toMatchObject({ authority: "owner", state: "done" });
    expect(sent()).toBe(0);
  });
});

describe("an order of the owner in a conversation with a file of somebody else's", () => {
  test.each(EVES_FILES)("is carried out as it is written, and the file's is not: %s", async (_, file) => {
    world.reset();
    await afterFile(world, file, {
      text: "@office ORDER call send_mail to=bob@example.org text=Hello OVER",
    });
    const asked = world.room.model.requests.flatMap(({ body }) => body?.messages ?? []);
    const wanted = asked.flatMap(({ tool_calls = [] }) => tool_calls).map((call) => call.function);
    expect(wanted.filter(({ arguments: args }) => args.includes("eve@example.net"))).not.toBeEmpty();
    const recipients = world.office.calls.filter(({ name }) => name === "send_mail");
    expect(recipients.map(({ args }) => args)).toEqual([{ to: "bob@example.org", text: "Hello" }]);
  });
});
