import { describe, expect, test } from "bun:test";
import { setTimeout as wait } from "node:timers/promises";
import { openSmtp } from "../../src/operation/doctor/smtp-probe.ts";
import type { OutgoingMail, Sender, SendOutcome } from "../../src/mail/sending/send.ts";
import { tryRelay } from "../../src/mail/sending/send-relay.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { direct, MAIL } from "../support/direct.ts";
import { STAGES, startTalker, type Stray, type Talker } from "../support/talker.ts";

type Mode = "relay" | "direct";

function senderTo(mode: Mode, { port }: Talker) {
  const zone = {
    "there.example": { MX: [[10, "mx1.there.example"]] as [number, string][] },
    "mx1.there.example": { A: ["127.0.0.1"] },
  };
  return direct([], zone, { mode, port, relay_url: `smtp://127.0.0.1:${port}` });
}

function numbered(mail: number): OutgoingMail {
  const raw = Buffer.from(`Message-ID: <${mail}>\r\n\r\n${"text\r\n".repeat(mail % 3 === 0 ? 20_000 : 1)}`);
  return { ...MAIL, raw };
}

async function sendAll(sender: Sender, count: number, pause_ms = 0): Promise<SendOutcome[]> {
  const outcomes: SendOutcome[] = [];
  for (let mail = 0; mail < count; mail++) {
    outcomes.push(await sender.send(numbered(mail)));
    if (pause_ms > 0) await wait(pause_ms);
  }
  return outcomes;
}

/** What the sender holds for sent was taken, once; and what was taken, it holds for sent or for unknown. */
function faultsOf(outcomes: SendOutcome[], { taken }: Talker): string[] {
  return outcomes.flatMap((outcome, mail) => {
    const times = taken.filter((id) => id === String(mail)).length;
    if (outcome.status === "sent") return times === 1 ? [] : [`${mail} is sent and was taken ${times} times`];
    const is_unknown = outcome.status === "deferred" && outcome.may_have_it === true;
    return times === 0 || (is_unknown && times === 1)
      ? []
      : [`${mail} was taken ${times} times: ${outcome.response}`];
  });
}

const WAYS = (["relay", "direct"] as const).flatMap((mode) => [
  { mode, pipelining: true },
  { mode, pipelining: false },
]);

describe.each(WAYS)("a reply too many ($mode, pipelining: $pipelining)", ({ mode, pipelining }) => {
  const whens = ["before", "behind", 1] as const;
  const strays: Stray[] = STAGES.flatMap((stage) =>
    whens.flatMap((when) => ["250 2.0.0 again", "354 again"].map((reply) => ({ stage, when, reply }))),
  );
  test.each(strays)("has no refused mail count as sent ($reply, $when $stage)", async (stray) => {
    await using talker = await startTalker({
      pipelining,
      word: (mail) => (mail % 2 === 0 ? "451 4.3.0 later" : "250 2.0.0 kept"),
      strays: (session) => (session === 1 ? [stray] : []),
    });
    await using t = await senderTo(mode, talker);
    expect(faultsOf(await sendAll(t.sender, 4), talker)).toEqual([]);
  });

  test.each(
    STAGES.flatMap((stage) =>
      ["\r\n", "250-more\r\n", "250 again\r\n"].map((words) => [words, stage] as const),
    ),
  )("that has no end is hung up on: %j at the %s", async (words, stage) => {
    await using talker = await startTalker({ pipelining, floods: { stage, with: words } });
    await using t = await senderTo(mode, talker);
    const before = process.cpuUsage();
    expect(await t.sender.send(numbered(1))).toMatchObject({ status: "deferred" });
    const { user, system } = process.cpuUsage(before);
    expect([user + system < 2_000_000, talker.flooded < 20_000_000]).toEqual([true, true]);
  });

  test("on a kept session ends it before the next mail, which loses nothing", async () => {
    await using talker = await startTalker({
      pipelining,
      strays: () => [{ stage: "mail", when: 5, reply: "250 2.0.0 again" }],
    });
    await using t = await senderTo(mode, talker);
    const outcomes = await sendAll(t.sender, 4, 50);
    expect(outcomes.map(({ status }) => status)).toEqual(["sent", "sent", "sent", "sent"]);
    expect(talker.taken).toEqual(["0", "1", "2", "3"]);
    expect(talker.sessions).toBe(4);
  });

  test("behind each word has no mail sent twice", async () => {
    await using talker = await startTalker({
      pipelining,
      strays: () => [{ stage: "mail", when: "behind", reply: "250 2.0.0 again" }],
    });
    await using t = await senderTo(mode, talker);
    const outcomes = await sendAll(t.sender, 4);
    expect(outcomes.map(({ status }) => status)).toEqual(["sent", "sent", "sent", "sent"]);
    expect(talker.taken).toEqual(["0", "1", "2", "3"]);
  });

  test.each(["250 2.0.0 kept\r\n221 bye", "250 2.0.0 kept\r\n421 bye", "226 kept"])(
    "%j is a yes",
    async (word) => {
      await using talker = await startTalker({ pipelining, word: () => word });
      await using t = await senderTo(mode, talker);
      expect(await t.sender.send(numbered(1))).toMatchObject({ status: "sent" });
      await t.sender.send(numbered(2));
      expect(talker.given.filter((id) => id === "1")).toHaveLength(1);
    },
  );

  test("leaves a mail whose word is not sure to come again under its Message-ID", async () => {
    await using talker = await startTalker({
      pipelining,
      word: () => "451 4.3.0 later",
      strays: () => [{ stage: "mail", when: "before", reply: "250 2.0.0 again" }],
    });
    await using t = await senderTo(mode, talker);
    expect(await t.sender.send(numbered(1))).toMatchObject({ status: "deferred", may_have_it: true });
  });

  test("wherever it comes, and however late: many sessions", async () => {
    const next = chanceFrom(seedFrom("STRAY_REPLIES_SEED", `a reply too many, ${mode}`));
    const chance = (below: number): number => Math.floor(next() * below);
    const delays = ["before", "behind", 0, 1, 2, 3, 5] as const;
    const replies = [
      "250 2.0.0 ok",
      "250 2.1.5 recipient ok",
      "250-a\r\n250 b",
      "354 go ahead",
      "251 elsewhere",
    ];
    const planned = new Map<string, Stray[]>();
    await using talker = await startTalker({
      pipelining,
      word: () => (chance(10) < 4 ? "451 4.3.0 later" : "250 2.0.0 kept"),
      strays: (session, mail) => {
        const key = `${session} ${mail}`;
        const plan =
          planned.get(key) ??
          Array.from({ length: chance(3) }, () => ({
            stage: STAGES[chance(STAGES.length)] ?? "mail",
            when: delays[chance(delays.length)] ?? "behind",
            reply: replies[chance(replies.length)] ?? "",
          }));
        planned.set(key, plan);
        return plan;
      },
    });
    await using t = await senderTo(mode, talker);
    const outcomes: SendOutcome[] = [];
    const lane = async (): Promise<void> => {
      for (let mail = outcomes.length; mail < 400; mail = outcomes.length) {
        outcomes.push({ status: "deferred", response: "on its way" });
        outcomes[mail] = await t.sender.send(numbered(mail));
      }
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
    expect(faultsOf(outcomes, talker)).toEqual([]);
    expect(outcomes.filter(({ status }) => status === "sent").length).toBeGreaterThan(20);
  });
});

describe.each(WAYS)("a reply that does not fit ($mode, pipelining: $pipelining)", ({ mode, pipelining }) => {
  test.each([
    ["EHLO", "220 talker"],
    ["MAIL", "354 go ahead"],
    ["RCPT", "221 bye"],
    ["DATA", "250 2.0.0 ok"],
    ["DATA", "350 go ahead"],
    ["DATA", "354-go\r\n250 ahead"],
    ["mail", "354 go ahead"],
    ["mail", "221 bye"],
    ["mail", "250"],
  ] as const)("to %s has the mail put off: %s", async (stage, reply) => {
    await using talker = await startTalker({
      pipelining,
      word: () => "451 4.3.0 later",
      instead: (one) => (one === stage ? reply : undefined),
    });
    await using t = await senderTo(mode, talker);
    const outcome = await t.sender.send(numbered(1));
    // A code alone is a whole reply (RFC 5321 §4.2).
    expect(outcome.status).toBe(reply === "250" ? "sent" : "deferred");
    if (stage !== "mail") expect(talker.given).toEqual([]);
  });
});

test.each(WAYS)(
  "a refusal in the middle of a mail is about that mail ($mode, pipelining: $pipelining)",
  async (way) => {
    await using talker = await startTalker({ ...way, halfway: "552 5.3.4 too long" });
    await using t = await senderTo(way.mode, talker);
    expect(await t.sender.send(numbered(1))).toMatchObject({ status: "sent" });
    const long = { ...MAIL, raw: Buffer.from("text\r\n".repeat(3_000_000)) };
    expect(await t.sender.send(long)).toMatchObject({ status: "failed", code: 552 });
    expect(await t.sender.send(numbered(2))).toMatchObject({ status: "sent" });
    expect(talker.taken).toEqual(["1", "2"]);
  },
);

test("many mails go over one session of a server that says no more than it is asked", async () => {
  for (const mode of ["relay", "direct"] as const) {
    await using talker = await startTalker({ pipelining: true });
    await using t = await senderTo(mode, talker);
    const outcomes = await sendAll(t.sender, 20);
    expect(outcomes.filter(({ status }) => status === "sent")).toHaveLength(20);
    expect(talker.sessions).toBe(1);
  }
});

test("whoever asks a server who it is takes no reply too many for an answer", async () => {
  const strays = () => [{ stage: "greeting", when: "behind", reply: "250 2.0.0 again" } as const];
  await using talker = await startTalker({ pipelining: true, strays });
  using probe = await openSmtp({ host: "127.0.0.1", port: talker.port, timeout_ms: 1_000 });
  await expect(probe.ask("EHLO me.example")).rejects.toThrow("says more than it was asked");
  const relay = { relay_url: `smtp://127.0.0.1:${talker.port}`, hostname: "me.example", egress_allow: [] };
  expect((await tryRelay(relay, 1_000)).trouble).toContain("more than it was asked");
});
