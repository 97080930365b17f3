import {
  prepareCodeLetter,
  prepareExportLetter,
  prepareFarewell,
  prepareKeyLetter,
  preparePasswordLetter,
} from "../../src/resources/accounts/account-mail.ts";
import { countUntold } from "../../src/resources/accounts/untold.ts";
import { tellOwnerLater } from "../../src/jobs/tell-later.ts";
import { composeReply } from "../../src/mail/writing/compose.ts";
import { pictureOf } from "../../src/mail/writing/pictures.ts";
import { written } from "../../src/mail/writing/written.ts";
import type { QueueLetter } from "../../src/mail/writing/letters.ts";
import { mailroom, type Mailroom } from "./mailroom.ts";
import { plot } from "./plot.ts";
import { SAMPLE_ANSWERS } from "./sample-answers.ts";

/** A mail of ours as it goes out. */
export interface OwnMail {
  name: string;
  raw: Buffer;
}

const MARKS = { name: "my script", prefix: "mw_live_abcd", last4: "wxyz" };

/** One mail of every kind that the server writes, made by the server. */
export async function everyMail(): Promise<OwnMail[]> {
  let answer = "";
  await using room = await mailroom({ model: { reply: () => answer } });
  const mails: OwnMail[] = [];
  const note = async (name: string, make: () => Promise<unknown>): Promise<void> => {
    const before = (await room.outgoing()).length;
    await make();
    await room.drain();
    for (const { raw } of (await room.outgoing()).slice(before))
      mails.push({ name, raw: Buffer.from(raw ?? []) });
  };
  for (const [name, words] of Object.entries(SAMPLE_ANSWERS)) {
    answer = words;
    await note(`answer-${name.replaceAll("_", "-")}`, () =>
      room.send({ text: `Summarise the quarter (${name}), please.` }),
    );
  }
  answer = SAMPLE_ANSWERS["report"] ?? "";
  await note("answer-with-notes", () => room.send({ text: "And of this?\n\n> Sales were good." }));
  answer = `# All orders\n\n| Order | Sum |\n|---|---|\n${"| A-1001 | 12.50 |\n".repeat(2_000)}`;
  await note("answer-too-long", () => room.send({ text: "List all orders." }));
  await note("failure", async () => {
    room.model.fault = "content_filter";
    await room.send({ text: "Summarise the quarter once more, please." });
  });
  mails.push({ name: "answer-pictures", raw: await withPictures() });
  await letters(room, note);
  return mails;
}

/** As an answer leaves to which tools have made two pictures. */
async function withPictures(): Promise<Buffer> {
  const files = ["revenue.png", "orders.png"].map((filename, at) => ({
    filename,
    content_type: "image/png",
    bytes: plot([30, 50, 20, 80, 65 + at * 20]),
  }));
  const pictures = files.flatMap((file) => pictureOf(file) ?? []);
  const { raw } = await composeReply({
    from: { name: "Desk", address: "desk@mw.test" },
    to: "ada@example.com",
    envelope_from: "",
    subject: "The quarter",
    message_id: "pictures@mw.test",
    hop: 1,
    words: written("Here is the plot:\n\n![Revenue by month](revenue.png)\n\nIt rose in September.", {
      pictures,
    }),
    attachments: files.map((file, at) => ({ ...file, cid: pictures[at]?.cid ?? "" })),
    footer: "Sent by AI on behalf of Desk",
    date: new Date(0),
    kind: "reply",
  });
  return raw;
}

async function letters(room: Mailroom, note: (name: string, make: () => Promise<unknown>) => Promise<void>) {
  const { app, owner } = room;
  const user = await app.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
  const queued = (letter: Promise<QueueLetter>) => async () => app.write(await letter);
  await note(
    "code",
    queued(prepareCodeLetter(app, user, { code: "359724", minutes: 10, reason: "sign_in" })),
  );
  await note("key", queued(prepareKeyLetter(app, user, { key: MARKS, by: MARKS })));
  await note("export", queued(prepareExportLetter(app, user, MARKS)));
  await note("password", queued(preparePasswordLetter(app, user)));
  await note("farewell", queued(prepareFarewell(app, user.id, { email: user.email, by: null })));
  await note("card", () => owner.post(`/inboxes/${room.inbox.id}/email-vcard`));
  await note("summed-up", async () => {
    await app.write((tx) => countUntold(app, tx, { user_id: user.id, about: "key" }, 12));
    room.clock.advance("61m");
  });
  const { id: message_id } = await room.newest();
  await note("not-worked-on", () =>
    app.write((tx) => tellOwnerLater(app, tx, { user_id: user.id, kind: "mail_left_out", message_id })),
  );
  const refused = { what: "mail", bytes: 10 ** 12, whose: "strangers" } as const;
  await note("storage-full", () =>
    app.write((tx) => tellOwnerLater(app, tx, { user_id: user.id, kind: "storage_full", refused })),
  );
}
