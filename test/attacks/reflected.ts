import { addressIn } from "../support/mailroom.ts";
import { type Attack, mails } from "./attack.ts";
import { type AttackMail, EVE, LISTED, OWNER } from "./world.ts";

const EVES = addressIn(EVE);
/** Somebody who has never heard of this server. */
const VICTIM = "victim@gmail.com";

interface Reflected {
  name: string;
  from?: string;
  /** The field as it is written. */
  reply_to: string;
  /** Whom it is to reach. */
  victim: string;
  /** What the owner has listed. */
  list?: string[];
  more?: AttackMail;
}

/** Mails of strangers, whose answer goes to nobody but From. */
const STRANGERS: Reflected[] = [
  { name: "at the same public provider", from: "Eve <eve@gmail.com>", reply_to: VICTIM, victim: VICTIM },
  {
    name: "at the other name of the same provider",
    from: "Eve <eve@googlemail.com>",
    reply_to: VICTIM,
    victim: VICTIM,
  },
  {
    name: "of the same organisation",
    from: "Eve <eve@corp.example>",
    reply_to: "boss@corp.example",
    victim: "boss@corp.example",
  },
  {
    name: "of a subdomain",
    from: "Eve <eve@corp.example>",
    reply_to: "boss@eu.corp.example",
    victim: "boss@eu.corp.example",
  },
  {
    name: "of the domain above",
    from: "Eve <eve@eu.corp.example>",
    reply_to: "boss@corp.example",
    victim: "boss@corp.example",
  },
  {
    name: "that differs by a sub-address",
    from: "Eve <eve@corp.example>",
    reply_to: "eve+list@corp.example",
    victim: "eve+list@corp.example",
  },
  { name: "of the owner", from: EVE, reply_to: addressIn(OWNER), victim: addressIn(OWNER) },
  { name: "of a listed sender of another inbox", from: EVE, reply_to: LISTED, victim: addressIn(LISTED) },
  {
    name: "of the same provider, and in all other fields",
    from: "Eve <eve@gmail.com>",
    reply_to: VICTIM,
    victim: VICTIM,
    more: {
      headers: { Sender: VICTIM, "Mail-Followup-To": VICTIM, "Mail-Reply-To": VICTIM, "Errors-To": VICTIM },
    },
  },
];

/** Mails of Ada and of who is on her list, with an address that is neither hers nor listed. */
const TRUSTED: Reflected[] = [
  { name: "in Ada's domain", reply_to: "eve@example.com", victim: "eve@example.com" },
  { name: "in a subdomain of Ada's", reply_to: "eve@evil.example.com", victim: "eve@evil.example.com" },
  { name: "that is Ada's but for a tag", reply_to: "ada+eve@example.com", victim: "ada+eve@example.com" },
  { name: "that is Ada's but for a dot", reply_to: "a.da@example.com", victim: "a.da@example.com" },
  {
    name: "that is Ada's but for a Cyrillic letter",
    reply_to: "\u0430da@example.com",
    victim: "\u0430da@example.com",
  },
  {
    name: "in a domain that looks like Ada's",
    reply_to: "ada@ex\u0430mple.com",
    victim: "ada@ex\u0430mple.com",
  },
  {
    name: "in a domain that begins as Ada's",
    reply_to: "ada@example.com.evil.net",
    victim: "ada@example.com.evil.net",
  },
  { name: "in a group", reply_to: `Ada: ${EVES};`, victim: EVES },
  { name: "in a group behind Ada", reply_to: `ada@example.com, Friends: ${EVES};`, victim: EVES },
  { name: "behind Ada", reply_to: `ada@example.com, ${EVES}`, victim: EVES },
  { name: "before Ada", reply_to: `${EVES}, ada@example.com`, victim: EVES },
  { name: "behind a comment that is Ada's address", reply_to: `(ada@example.com) ${EVES}`, victim: EVES },
  { name: "in capitals", reply_to: EVES.toUpperCase(), victim: EVES },
  { name: "behind an encoded name", reply_to: `=?utf-8?q?ada=40example.com?= <${EVES}>`, victim: EVES },
  {
    name: "of a listed sender's colleague",
    from: LISTED,
    list: [addressIn(LISTED)],
    reply_to: "eve@example.org",
    victim: "eve@example.org",
  },
  {
    name: "in a subdomain of a listed domain",
    list: ["@example.org"],
    reply_to: "eve@evil.example.org",
    victim: "eve@evil.example.org",
  },
  {
    name: "in a domain that only ends as a listed one",
    list: ["@*.example.org"],
    reply_to: "eve@evilexample.org",
    victim: "eve@evilexample.org",
  },
  {
    name: "at a public provider that is listed as a whole",
    list: ["@gmail.com"],
    reply_to: VICTIM,
    victim: VICTIM,
  },
];

/** Taken away in the control: that the address is on nobody's list, and what hides it in its field. */
function attackOf(who: string, { name, from = OWNER, reply_to, victim, list = [], more }: Reflected): Attack {
  const mail = { text: "Hello", from, ...more };
  const listing =
    (allowlist: string[], act: Attack["act"]): Attack["act"] =>
    async (world) => {
      const set = (allowlist_senders: string[]) =>
        world.room.owner.patch(`/inboxes/${world.inboxes.desk.id}`, { allowlist_senders });
      await set(allowlist);
      try {
        return await act(world);
      } finally {
        await set([]);
      }
    };
  const to = (field: string) => mails({ ...mail, headers: { ...more?.headers, "Reply-To": field } });
  return {
    kind: "Reply-To",
    name: `of ${who}, ${name}`,
    effect: `mailed ${victim}`,
    act: listing(list, to(reply_to)),
    control: listing([victim, addressIn(from)], to(victim)),
  };
}

export const REFLECTED: Attack[] = [
  ...STRANGERS.map((one) => attackOf("a stranger", one)),
  ...TRUSTED.map((one) => attackOf("one with a word to say", one)),
];
