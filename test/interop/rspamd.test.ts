import { describe, expect, test } from "bun:test";
import { mailroom, READS_ANYBODY } from "../support/mailroom.ts";
import { hasRspamd, JUNK_WORDS, SPAM_WORDS, startRspamd } from "./rspamd.ts";

if (!hasRspamd) console.log("rspamd is not tried: as root, apt-get install rspamd");

const EVE = "Eve <eve@example.net>";

describe.skipIf(!hasRspamd)("rspamd", () => {
  test("has spam refused and junk left out, each with its reason, and lets everything else pass; once it is gone, all", async () => {
    await using filter = await startRspamd();
    await using room = await mailroom({
      inbox: READS_ANYBODY,
      config: { rspamd: { url: filter.url }, smtp: { trusted_networks: [] } },
    });
    const send = (text: string) => room.send({ from: EVE, subject: text.slice(0, 5), text });
    expect(await send("A good word")).toStartWith("250");
    expect(await send(`Buy ${JUNK_WORDS}`)).toStartWith("250");
    expect(await send(SPAM_WORDS)).toStartWith("550 5.7.1 The spam filter of this server refuses this mail");
    await room.drain();
    const rows = await room.app.db
      .selectFrom("messages")
      .select(["state", "reason", "error"])
      .orderBy("id")
      .execute();
    expect(rows.map(({ state, reason }) => [state, reason])).toEqual([
      ["done", null],
      ["skipped", "junk"],
      ["rejected", "spam"],
    ]);
    expect(rows[1]?.error).toContain("8 of 15 points, PILLS");
    expect(room.app.spam_filter.trouble).toBeNull();
    await filter.stop();
    expect(await send(SPAM_WORDS)).toStartWith("250");
    expect(room.app.spam_filter.trouble).not.toBeNull();
  });
});
