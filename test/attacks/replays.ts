import { addressIn, freshId, READS_ANYBODY, signedBy } from "../support/mailroom.ts";
import { type MailParts, rawMail } from "../support/mails.ts";
import { pass } from "../support/purge.ts";
import { altered } from "../support/signed-room.ts";
import { type Attack, TO_EVE } from "./attack.ts";
import { AS_OWNER, type AttackMail, LISTED, OWNER, type World } from "./world.ts";

/** What Ada, or who is on her list, once had done; Eve has a copy of the mail. */
const ORDER = `@office ${TO_EVE}`;
const MANY = 25;

interface Place {
  id: string;
  address: string;
}

async function signed(world: World, { headers, ...mail }: MailParts & { to: string }): Promise<Buffer> {
  const { from = OWNER } = mail;
  const date = new Date(world.room.clock.now()).toUTCString().replace("GMT", "+0000");
  const fields = { Date: date, ...freshId().headers, ...headers };
  return signedBy(
    addressIn(from).split("@")[1] ?? "",
    rawMail({ subject: "A question", text: ORDER, ...mail, from, headers: fields }),
  );
}

/** An inbox like the desk that keeps its messages for a day. */
async function makeInbox({ room, inboxes }: World, more: Record<string, unknown> = {}): Promise<Place> {
  const { mcp_connection_ids } = (await room.owner.get(`/inboxes/${inboxes.desk.id}`)).body;
  const kept = { label: "Kept", mcp_connection_ids, retention_days: 1, ...READS_ANYBODY, ...more };
  const { status, body } = await room.owner.post("/inboxes", kept);
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

/** Sends a copy to where it went before, or elsewhere. */
function send(world: World, raw: Buffer, mail: AttackMail & { rcpt: string | string[] }): Promise<void> {
  return world.mail({ raw, mail_from: "eve@example.net", replayed: true, ...mail });
}

interface Story {
  name: string;
  /** The mail that was obeyed; by default one of Ada's. */
  mail?: Partial<MailParts>;
  inbox?: Record<string, unknown>;
  /** What happens between the order and its repetition. */
  meanwhile?: (world: World, place: Place) => Promise<unknown>;
  /** What is sent again, and where. */
  copy?: (raw: Buffer) => Buffer;
  rcpt?: (world: World, place: Place) => Promise<string | string[]> | string | string[];
  /** It is answered, as the mail of anybody is. */
  answered?: true;
}

/** A mail that was obeyed once is sent again. */
const OBEYED: Story[] = [
  { name: "as it was" },
  { name: "after its message was deleted", meanwhile: ({ room }) => pass(room, 3) },
  { name: "to the address in capitals", rcpt: (_, { address }) => address.toUpperCase() },
  {
    name: "with other case in the names of its fields",
    copy: (raw) => edited(raw, /^Subject:/m, "SUBJECT:"),
  },
  { name: "with more space in a field", copy: (raw) => edited(raw, /^Subject: /m, "Subject:   ") },
  { name: "with a field that is folded", copy: (raw) => edited(raw, /^Subject: A /m, "Subject: A\r\n ") },
  { name: "with spaces at the ends of its lines", copy: (raw) => edited(raw, / OVER$/m, " OVER  ") },
  { name: "with more lines at its end", copy: (raw) => Buffer.concat([raw, Buffer.from("\r\n\r\n")]) },
  {
    name: "of a listed sender",
    mail: { from: LISTED },
    inbox: { allowlist_senders: [addressIn(LISTED)] },
  },
  {
    name: "of a listed sender, after its message was deleted",
    mail: { from: LISTED },
    inbox: { allowlist_senders: [addressIn(LISTED)] },
    meanwhile: ({ room }) => pass(room, 3),
  },
  {
    name: "to another inbox of hers as well, after its message was deleted",
    meanwhile: ({ room }) => pass(room, 3),
    rcpt: async (world, { address }) => [address, (await makeInbox(world)).address],
    answered: true,
  },
  {
    name: "without a Message-ID, after its message was deleted",
    mail: { headers: { "Message-ID": "" } },
    meanwhile: ({ room }) => pass(room, 3),
  },
];

/** The control has forgotten that the mail has been here. */
const REPEATED: Attack[] = OBEYED.map(({ name, mail = {}, answered, inbox, meanwhile, copy, rcpt }) => {
  const act =
    (forgets: boolean): Attack["act"] =>
    async (world) => {
      const place = await makeInbox(world, inbox);
      const raw = await signed(world, { to: place.address, ...mail });
      await send(world, raw, { rcpt: place.address, ...mail });
      await meanwhile?.(world, place);
      world.reset();
      if (forgets) await forgetKeys(world);
      const to = (await rcpt?.(world, place)) ?? place.address;
      await send(world, copy?.(raw) ?? raw, { rcpt: to, ...mail, silent: !forgets && answered !== true });
    };
  return {
    kind: "replays",
    name: `a mail that was obeyed, ${name}`,
    effect: "ran send_mail",
    allowed: { command: { target: "mcp:office" } },
    act: act(false),
    control: act(true),
  };
});

async function forgetKeys({ room: { app } }: World): Promise<void> {
  await app.db.updateTable("messages").set({ dedupe_key: null }).execute();
  await app.db.deleteFrom("mail_keys").execute();
}

function edited(raw: Buffer, pattern: RegExp, by: string): Buffer {
  return Buffer.from(raw.toString("latin1").replace(pattern, by), "latin1");
}

const MALLORY = "Mallory <mallory@example.net>";
const FAR = "Fri, 31 Dec 2060 10:00:00 +0000";

/** A mail that Ada wrote, and that somebody makes use of for what she never asked for. The control believes it hers. */
const MISUSED: Attack[] = (
  [
    { name: "with another Reply-To", copy: (raw) => altered(raw, "Reply-To: eve@example.net") },
    { name: "as an answer to her thread", copy: (raw) => altered(raw, "In-Reply-To: <earlier@example.com>") },
    {
      name: "with references to her thread",
      copy: (raw) => altered(raw, "References: <earlier@example.com>"),
    },
    { name: "written to somebody else", mail: { to: MALLORY } },
    {
      name: "written to somebody else, with the inbox in a copy that nobody signed",
      mail: { to: MALLORY },
      copy: (raw) => altered(raw, "Cc: desk@mw.test"),
    },
    { name: "with a tag at the address", rcpt: (_, { address }) => address.replace("@", "+again@") },
    {
      name: "with a tag of two words, days later",
      meanwhile: ({ room }) => pass(room, 3),
      rcpt: (_, { address }) => address.replace("@", "+again+now@"),
    },
    { name: "to another inbox of hers", rcpt: async (world) => (await makeInbox(world)).address },
    {
      name: "to the address that the inbox was given instead",
      meanwhile: async ({ room }, place) => {
        place.address = (await room.owner.post(`/inboxes/${place.id}/rotate`)).body.address;
      },
    },
    {
      name: "to an inbox that was made in the place of the old one",
      meanwhile: async (world, place) => {
        await world.room.owner.delete(`/inboxes/${place.id}`);
        Object.assign(place, await makeInbox(world));
      },
    },
    { name: "of a listed sender, to an inbox that lists nobody", mail: { from: LISTED } },
    { name: "without a date", mail: { headers: { Date: "" } } },
    { name: "with a date that nobody can read", mail: { headers: { Date: "the other day" } } },
    { name: "with the date of 2060", mail: { headers: { Date: FAR } } },
    { name: "with an old date", mail: { headers: { Date: "Fri, 03 May 2024 10:00:00 +0000" } } },
    { name: "a year later", meanwhile: ({ room }) => pass(room, 368) },
  ] as Story[]
).map(({ name, mail = {}, meanwhile, copy, rcpt }) => {
  const act =
    (more: Partial<AttackMail>): Attack["act"] =>
    async (world) => {
      const place = await makeInbox(world);
      const raw = await signed(world, { to: place.address, ...mail });
      await meanwhile?.(world, place);
      world.reset();
      const to = (await rcpt?.(world, place)) ?? place.address;
      const { from } = mail;
      await send(world, copy?.(raw) ?? raw, { rcpt: to, ...(from === undefined ? {} : { from }), ...more });
    };
  return {
    kind: "replays",
    name: `a mail of Ada's, ${name}`,
    effect: "ran send_mail",
    act: act({}),
    control: act({ believe: AS_OWNER }),
  };
});

const KEPT_OUT = "kept Ada's mail out";

/** Eve sends so much of Ada's that Ada's own next mail finds no place. The control sends what counts as Ada's. */
const USED_UP: Attack[] = (
  [
    ["as it was", ({ raw }) => raw],
    ["altered", async ({ fresh }) => altered(await fresh())],
    ["written to others", ({ fresh }) => fresh({ to: MALLORY })],
    ["of a machine of hers, as it was", ({ machine }) => machine],
    ["of machines of hers, altered", async ({ fresh }) => altered(await fresh(BY_MACHINE))],
    ["of an old date", ({ fresh }) => fresh({ headers: { Date: "Fri, 03 May 2024 10:00:00 +0000" } })],
  ] as [string, (ways: Ways) => Buffer | Promise<Buffer>][]
).map(([name, choose]) => ({
  kind: "replays",
  name: `${MANY} mails of Ada's, ${name}, and then her own`,
  effect: KEPT_OUT,
  act: usingUp(choose),
  control: usingUp(({ fresh }) => fresh()),
}));

const BY_MACHINE = { headers: { "Auto-Submitted": "auto-generated" } };

interface Ways {
  /** The same mail every time. */
  raw: Buffer;
  machine: Buffer;
  fresh: (mail?: Partial<MailParts>) => Promise<Buffer>;
}

function usingUp(choose: (ways: Ways) => Buffer | Promise<Buffer>): Attack["act"] {
  return async (world) => {
    const place = await makeInbox(world);
    let written = 0;
    const fresh: Ways["fresh"] = (mail) =>
      signed(world, { to: place.address, text: `Hello ${(written += 1)}`, ...mail });
    const ways = { fresh, raw: await fresh(), machine: await fresh(BY_MACHINE) };
    const { limits } = world.room.app.config;
    const usual = { ...limits };
    // She may send five times as many herself.
    Object.assign(limits, { inbound_per_sender_hour: 4, replies_per_sender_hour: 20 });
    try {
      for (let count = 0; count < MANY; count += 1)
        await send(world, await choose(ways), { rcpt: place.address, silent: true });
      world.reset();
      await send(world, await fresh({ text: "My own." }), { rcpt: place.address });
      const { authority, state } = await world.room.newest();
      const reply = world.handed.at(-1)?.reply ?? "";
      world.reset();
      return reply.startsWith("250") && authority === "owner" && state === "done" ? [] : [KEPT_OUT];
    } finally {
      Object.assign(limits, usual);
    }
  };
}

/** What a machine of Ada's wrote by Eve's words, without the mark that says so. The control has forgotten the mark. */
const UNMARKED: Attack[] = [
  { name: "Auto-Submitted", mark: "Auto-Submitted: auto-generated" },
  { name: "Precedence", mark: "Precedence: bulk" },
  { name: "List-Id, days later", mark: "List-Id: <forms.example.com>", days: 3 },
  {
    name: "List-Id, in an inbox that reads such mail",
    mark: "List-Id: <forms.example.com>",
    inbox: { inbound_policy: { process_bulk: true, process_unauthenticated: true } },
  },
].map(({ name, mark, inbox, days = 0 }) => {
  const act =
    (forgets: boolean): Attack["act"] =>
    async (world) => {
      const place = await makeInbox(world, inbox);
      const raw = await signed(world, { to: place.address });
      await world.mail({ raw: altered(raw, mark), rcpt: place.address, silent: true });
      if (days > 0) await pass(world.room, days);
      world.reset();
      if (forgets) await forgetKeys(world);
      await send(world, raw, { rcpt: place.address, silent: !forgets });
    };
  return {
    kind: "replays",
    name: `a mail of a machine of Ada's, without its ${name}`,
    effect: "ran send_mail",
    allowed: { command: { target: "mcp:office" } },
    act: act(false),
    control: act(true),
  };
});

export const REPLAYS: Attack[] = [...REPEATED, ...UNMARKED, ...MISUSED, ...USED_UP];
