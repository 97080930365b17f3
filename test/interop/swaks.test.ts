import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBytes } from "../../src/resources/messages/stored-bytes.ts";
import { OWNER, smtpDoor } from "./smtp-door.ts";

const SWAKS = Bun.which("swaks");
const TLS = SWAKS !== null && /TLS supported/.test(Bun.spawnSync([SWAKS, "--support"]).stdout.toString());
if (SWAKS === null) console.log("swaks is not tried: apt-get install swaks libnet-ssleay-perl");
else if (!TLS) console.log("STARTTLS from swaks is not tried: apt-get install libnet-ssleay-perl");

/** Where swaks stops tells what was refused; these are its exit codes. */
const EXIT = { ok: 0, rcpt_refused: 24, mail_refused: 26 };

interface Run {
  exit: number;
  /** The session, line by line: `->` and `<-` in the clear, `~>` and `<~` encrypted. */
  session: string;
}

describe.skipIf(SWAKS === null)("swaks", () => {
  let door: Awaited<ReturnType<typeof smtpDoor>>;
  let dir: string;

  beforeAll(async () => {
    door = await smtpDoor();
    dir = await mkdtemp(join(tmpdir(), "mailwright-swaks-"));
  });

  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    await rm(dir, { recursive: true });
  });

  test("delivers a plain mail, which is answered", async () => {
    const { exit, session } = await swaks("--header", "Subject: Plain", "--body", "Summarise this.");
    expect(exit).toBe(EXIT.ok);
    expect(session).toContain("<-  250 2.6.0 Message accepted");
    const message = await worked("Plain");
    expect(message).toMatchObject({ status: "done", sender: OWNER, reply_status: "sent" });
    expect(message.result).toContain("Summarise this.");
  });

  test.skipIf(!TLS)("delivers over STARTTLS, and is not offered it twice", async () => {
    const { exit, session } = await swaks("-tls", "--header", "Subject: Encrypted");
    expect(exit).toBe(EXIT.ok);
    expect(session).toContain("=== TLS started with cipher TLSv1.3");
    expect(session.match(/STARTTLS\r?$/gm)).toHaveLength(2); // offered, asked for
    expect(session).toContain("<~  250 2.6.0 Message accepted");
    expect(await worked("Encrypted")).toMatchObject({ status: "done" });
  });

  test("delivers with PIPELINING, in the clear and encrypted", async () => {
    for (const tls of TLS ? [[], ["-tls"]] : [[]]) {
      const subject = `Pipelined ${tls.length}`;
      const { exit, session } = await swaks("--pipeline", ...tls, "--header", `Subject: ${subject}`);
      expect(exit).toBe(EXIT.ok);
      // MAIL, RCPT and DATA are out before the first of their answers.
      expect(session).toMatch(
        /[-~]> MAIL FROM.*\n.*[-~]> RCPT TO.*\n.*[-~]> DATA\n<[-~] {2}250 2\.1\.0 .*\n<[-~] {2}250 2\.1\.5 /,
      );
      expect(await worked(subject)).toMatchObject({ status: "done" });
    }
  });

  test("delivers a sender and a subject in UTF-8 as they are", async () => {
    const from = "jürgen@peer.test";
    const { exit } = await swaks(
      "--from",
      from,
      "--header",
      "Subject: Grüße aus Köln ✉",
      "--body",
      "Schöne Grüße.",
    );
    expect(exit).toBe(EXIT.ok);
    expect(await worked("Grüße aus Köln ✉")).toMatchObject({ sender: from, status: "done" });
  });

  test("delivers an attachment, which can be fetched again", async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 251));
    await writeFile(join(dir, "data.bin"), bytes);
    const { exit } = await swaks(
      "--attach-type",
      "application/x-test",
      "--attach-name",
      "data.bin",
      "--attach",
      `@${join(dir, "data.bin")}`,
      "--header",
      "Subject: Attached",
    );
    expect(exit).toBe(EXIT.ok);
    const message = await worked("Attached");
    expect(message.attachments).toMatchObject([
      { filename: "data.bin", size: bytes.length, direction: "in" },
    ]);
    const stored = await door.app.db
      .selectFrom("attachments")
      .selectAll()
      .where("id", "=", message.attachments[0].id)
      .executeTakeFirstOrThrow();
    expect(Buffer.from((await readBytes(door.app, "attachments", stored)) ?? []).equals(bytes)).toBe(true);
  });

  test("delivers to several recipients at once: each inbox gets its message, in any spelling of its address", async () => {
    const second: string = (await door.owner.post("/inboxes", { label: "Second" })).body.address;
    const to = `${door.inbox.toUpperCase()},${second.replace("@", "+tag@")}`;
    const { exit, session } = await swaks("--to", to, "--header", "Subject: Several");
    expect(exit).toBe(EXIT.ok);
    expect(session.match(/<- {2}250 2\.1\.5 Accepted/g)).toHaveLength(2);
    await worked("Several");
    const { items } = (await door.owner.get("/messages")).body;
    const several = items.filter(({ subject }: { subject: string }) => subject === "Several");
    expect(several.map(({ status }: { status: string }) => status)).toEqual(["done", "done"]);
    expect(new Set(several.map(({ inbox_id }: { inbox_id: string }) => inbox_id)).size).toBe(2);
  });

  test("is told by code and words who and what is not taken", async () => {
    const unknown = await swaks("--to", "nobody@mw.test");
    expect(unknown.exit).toBe(EXIT.rcpt_refused);
    expect(unknown.session).toContain("<** 550 5.1.1 There is no such address here");
    const relaying = await swaks("--to", "bob@elsewhere.test");
    expect(relaying.exit).toBe(EXIT.rcpt_refused);
    expect(relaying.session).toMatch(/<\*\* 550 5\.7\.1 This server takes mail for its own addresses only/);
    const twoFroms = await swaks("--header", `From: ${OWNER}`, "--add-header", "From: bob@peer.test");
    expect(twoFroms.exit).toBe(EXIT.mail_refused);
    expect(twoFroms.session).toContain("<** 550 5.6.0 ");
    const looping = await swaks(
      ...Array.from({ length: 31 }, (_, hop) => ["--add-header", `Received: by hop${hop}`]).flat(),
    );
    expect(looping.exit).toBe(EXIT.mail_refused);
    expect(looping.session).toContain("<** 554 5.4.6 ");
  });

  test("is told that a mail is too large, without having said its size before, and nothing of it is kept", async () => {
    await using small = await smtpDoor({ smtp: { max_message_bytes: 20_000 } });
    const server = [
      "--server",
      small.address.host,
      "--port",
      String(small.address.port),
      "--to",
      small.inbox,
    ];
    const { exit, session } = await swaks(...server, "--body", "A long line of text.\n".repeat(2_000));
    expect(exit).toBe(EXIT.mail_refused);
    expect(session).toContain("<** 552 5.3.4 ");
    expect(await small.stored()).toEqual([]);
    expect((await small.owner.get("/messages")).body.items).toMatchObject([
      { status: "rejected", reason: "too_large" },
    ]);
  });

  test.each(["FIRST-HELO", "MAIL", "RCPT", "DATA"])(
    "leaves nothing behind when it breaks off after %s",
    async (point) => {
      const before = (await door.stored()).length;
      await swaks("--drop-after-send", point, "--header", "Subject: Broken off");
      expect(await door.stored()).toHaveLength(before);
    },
  );

  async function swaks(...args: string[]): Promise<Run> {
    const { host, port } = door.address;
    const id = `<${Bun.randomUUIDv7()}@peer.test>`;
    const fixed = ["--server", host, "--port", String(port), "--ehlo", "client.test", "--timeout", "15"];
    const envelope = ["--from", OWNER, "--to", door.inbox, "--header", `Message-Id: ${id}`];
    const run = Bun.spawn([SWAKS ?? "", ...fixed, ...envelope, ...args], { stdin: "ignore", stderr: "pipe" });
    const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
    return { exit: await run.exited, session: out + err };
  }

  /** The newest message of this subject, worked on. */
  // oxlint-disable-next-line typescript/no-explicit-any
  async function worked(subject: string): Promise<any> {
    await door.drain();
    const { items } = (await door.owner.get("/messages")).body;
    return items.find((item: { subject: string }) => item.subject === subject);
  }
});
