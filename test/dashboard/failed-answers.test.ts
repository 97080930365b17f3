import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Inbox } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER, takePicture } from "./house.ts";

describe.skipIf(!hasChromium)("answers that did not arrive", () => {
  const stack = new AsyncDisposableStack();
  let refusal = "";
  let at: Dashboard;

  beforeAll(async () => {
    const relay = stack.use(await startSmtpSink({ reject: () => refusal }));
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "demo",
          MAILWRIGHT_OUTBOUND__MODE: "relay",
          MAILWRIGHT_OUTBOUND__RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
        },
      }),
    );
    const inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Desk" });
    const [host = "", port] = (await at.said(/ready .*smtp=(\S+)/)).split(":");
    for (const [subject, words] of [
      ["Put off", "450 4.7.1 later"],
      ["Sent back", "550 5.1.1 no such mailbox"],
    ] as const) {
      refusal = words;
      const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
      const raw = rawMail({ from: OWNER.email, to: inbox.address, subject, text: "Answer me", headers });
      await deliver({ host, port: Number(port) }, { from: OWNER.email, to: inbox.address, raw });
      await untilAnswered(subject, at);
    }
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  test.each(["/", "/conversations"])(
    "show in the list at %s as what they are",
    async (path) => {
      for (const [name, look] of LOOKS) {
        await using visit = await at.visit({ look });
        const { page } = visit;
        if (path !== "/") await visit.open("Conversations");
        for (const [subject, badge] of [
          ["Put off", "Answer is waiting"],
          ["Sent back", "Answer came back"],
        ] as const)
          await page
            .getByRole("listitem")
            .filter({ hasText: subject })
            .getByText(badge, { exact: true })
            .waitFor();
        const width = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect(width).toBeLessThanOrEqual(0);
        await takePicture(page, `failed-answers-${path.slice(1)}-${name}`);
      }
    },
    60_000,
  );
});

async function untilAnswered(subject: string, at: Dashboard): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const { items } = await at.api<{ items: { subject: string; reply_status: string }[] }>(
      "GET",
      "/messages",
    );
    const found = items.find((one) => one.subject === subject);
    if (found && ["deferred", "bounced"].includes(found.reply_status)) return;
    await Bun.sleep(100);
  }
  throw new Error(`The answer to "${subject}" was neither put off nor sent back`);
}
