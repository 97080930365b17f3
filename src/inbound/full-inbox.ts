import { refusalFor } from "../reasons.ts";
import type { App } from "../app.ts";
import { tellFull } from "../resources/billing/notices.ts";
import { takeTurn } from "../db/rate-limits.ts";
import type { InboxRow } from "../db/schema.ts";
import { logRefusal, type Refusal } from "./refusals.ts";
import { type FullInbox, fullAnswer } from "./mail-storage.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

/** How often the activity shows a full inbox, for each sender. */
const SHOWN_RULE = { limit: 1, window_seconds: DAY_SECONDS };

/** Tells the owner, by a letter and in the activity, that a mail of `size` bytes found no room. */
export async function tellOfFull(
  app: App,
  full: FullInbox,
  {
    size,
    ...mail
  }: Pick<Refusal, "subject" | "rfc_message_id" | "identity"> & { sender: string; size: number },
): Promise<void> {
  const { row, user, whose } = full;
  const refusal = { ...fullAnswer("this address", full), ...mail };
  await showOnce(app, row, { about: "full", refusal });
  await tellFull(app, user, { what: "mail", bytes: size, whose });
}

/** Shows in the activity that a mail was put off because the inbox is paused. */
export async function tellOfPaused(app: App, row: InboxRow, sender: string): Promise<void> {
  await showOnce(app, row, {
    about: "paused",
    refusal: { ...refusalFor("inbox_paused"), sender },
  });
}

async function showOnce(
  app: App,
  row: InboxRow,
  { about, refusal }: { about: string; refusal: Refusal & { sender: string } },
): Promise<void> {
  const turn = { key: `${about}:${row.id}:${refusal.sender}`, rule: SHOWN_RULE };
  if (!app.limiter.peek(turn.key, turn.rule).ok) return;
  await app.write(async (tx) => {
    if (takeTurn(app, tx, turn).ok) await logRefusal(app, tx, { inbox: row, refusal });
  });
}
