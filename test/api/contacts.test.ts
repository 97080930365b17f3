import { expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import type { ConfigOverrides } from "../../src/config/config.ts";
import type { ContactSubmissionRow, OutgoingMailRow } from "../../src/db/schema.ts";
import { type Answer, type TestApp, testApp } from "../support/app.ts";
import { ownMs } from "../support/own-time.ts";

const ADA = { name: "Ada Lovelace", email: "ada@example.com", message: "How do I\nmove it?" };

test("what is written is kept, and mailed to the administrator for an answer to the sender", async () => {
  await using t = await contactApp();
  const sent = { ...ADA, email: " Ada@EXAMPLE.com ", subject: "Moving", topic: "support", website: "" };
  const answer = await submit(t, { ...sent, started_at: t.clock.now() - 30_000 });
  expect([answer.status, answer.body]).toEqual([
    201,
    { id: expect.stringMatching(/^[0-9a-f-]{36}$/), created: t.app.now(), status: "received" },
  ]);
  expect(await kept(t)).toEqual([
    {
      id: answer.body.id,
      name: "Ada Lovelace",
      email: "ada@example.com",
      subject: "Moving",
      topic: "support",
      message: "How do I\nmove it?",
      flag: null,
      client: "",
      created: t.app.now(),
    },
  ]);
  const [letter, ...others] = await letters(t);
  expect(others).toEqual([]);
  expect(letter).toMatchObject({ envelope_to: "boss@example.org", kind: "notice", message_id: null });
  const mail = await simpleParser(Buffer.from(letter?.raw ?? ""));
  expect(mail.subject).toBe("Contact form: Moving");
  expect(mail.replyTo?.text).toBe("ada@example.com");
  expect(mail.from?.value).toEqual([{ name: "Mailwright", address: "mailwright@mw.test" }]);
  expect(mail.headers.get("auto-submitted")).toBe("auto-generated");
  expect(mail.text?.replaceAll(/^ {4}/gm, "")).toContain(
    "Name: Ada Lovelace\nE-mail: ada@example.com\nSubject: Moving\nTopic: support\n\nHow do I\nmove it?",
  );
  expect(mail.text).not.toContain("sent by a program");
});

test("a program that sends no time is heard, and the letter says so", async () => {
  await using t = await contactApp();
  const { status } = await submit(t, ADA);
  expect(status).toBe(201);
  expect((await kept(t))[0]).toMatchObject({ flag: null, subject: null, topic: null });
  const mail = await simpleParser(Buffer.from((await letters(t))[0]?.raw ?? ""));
  expect(mail.subject).toBe("Contact form: Ada Lovelace");
  expect(mail.text).toContain("It was sent by a program");
});

const SECOND = 1_000;
const DAY = 86_400_000;

test.each([
  ["a filled honeypot", { website: "https://spam.example" }, 30 * SECOND, "honeypot"],
  ["a blank in the honeypot", { website: " " }, 30 * SECOND, "honeypot"],
  ["less than two seconds", {}, 2 * SECOND - 1, "too_fast"],
  ["no time at all", {}, 0, "too_fast"],
  ["a start in the future", {}, -1, "started_in_future"],
  ["more than a day", {}, DAY + 1, "too_slow"],
  ["exactly two seconds", {}, 2 * SECOND, null],
  ["exactly a day", {}, DAY, null],
  ["an empty honeypot", { website: "" }, 30 * SECOND, null],
])(
  "of a form with %s the answer is the same, whether it is mailed or not",
  async (_name, more, age, flag) => {
    await using t = await contactApp();
    const plain = await submit(t, ADA);
    const answer = await submit(t, { ...ADA, ...more, started_at: t.clock.now() - age });
    const anonymous = ({ status, headers, body }: Answer) => ({
      status,
      names: [...headers.keys()],
      body: JSON.stringify({ ...body, id: body.id.replaceAll(/[0-9a-f]/g, "x") }),
    });
    expect(anonymous(answer)).toEqual(anonymous(plain));
    expect((await kept(t))[1]).toMatchObject({ id: answer.body.id, flag });
    expect(await letters(t)).toHaveLength(flag === null ? 2 : 1);
  },
);

test("an address is kept in the form in which mail from it is read", async () => {
  await using t = await contactApp();
  expect((await submit(t, { ...ADA, email: " Zoe\u0308@Example.com" })).status).toBe(201);
  expect(await kept(t)).toMatchObject([{ email: "zo\u00eb@example.com" }]);
});

test("the letter stays one that every mail server takes when the sender's address is not", async () => {
  await using t = await contactApp();
  expect((await submit(t, { ...ADA, email: "zoë@büro.example" })).status).toBe(201);
  const [letter] = await letters(t);
  const raw = Buffer.from(letter?.raw ?? "").toString();
  expect(raw.slice(0, raw.indexOf("\r\n\r\n"))).toMatch(/^[\x20-\x7e\t\r\n]+$/);
  const mail = await simpleParser(raw);
  expect(mail.replyTo).toBeUndefined();
  expect(mail.text).toContain("E-mail: zoë@xn--bro-hoa.example");
});

test("while there is no administrator, who would never hear of it, it is refused and nothing is kept or counted", async () => {
  await using t = await testApp({ limits: { contact_per_ip_hour: 1 } });
  for (const more of [{}, { website: "https://spam.example" }]) {
    const refused = await submit(t, { ...ADA, ...more });
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      503,
      "unavailable",
      "This server has no administrator yet, who would read it. Nothing was kept.",
    ]);
    expect(refused.headers.get("retry-after")).toBe("3600");
  }
  expect(await kept(t)).toEqual([]);
  await t.as("boss@example.org");
  expect((await submit(t, ADA)).status).toBe(201);
  expect(await letters(t)).toHaveLength(1);
});

test("of several administrators the one of the configuration gets the mail", async () => {
  await using t = await testApp({ auth: { admin_email: "Ops@Example.org" } });
  await t.as("first@example.org");
  await submit(t, ADA);
  await t.as("ops@example.org");
  await submit(t, ADA);
  await t.as("other@example.org");
  await submit(t, ADA);
  const recipients = (await letters(t)).map(({ envelope_to }) => envelope_to);
  expect(recipients).toEqual(["first@example.org", "ops@example.org", "ops@example.org"]);
});

test("the account that the configuration names later gets the mail as well", async () => {
  await using t = await testApp();
  await t.as("first@example.org");
  await t.as("ops@example.org");
  t.app.config.auth.admin_email = "ops@example.org";
  await submit(t, ADA);
  expect((await letters(t)).map(({ envelope_to }) => envelope_to)).toEqual(["ops@example.org"]);
});

const INJECTION = "x\r\nBcc: victim@example.net\r\n\r\nbody";

test.each([
  ["name", { name: INJECTION }],
  ["subject", { subject: INJECTION }],
  ["topic", { topic: INJECTION }],
  ["message", { message: `${INJECTION}\r\n.\r\nRCPT TO:<victim@example.net>` }],
  ["encoded word", { subject: "=?utf-8?Q?x=0D=0ABcc:_victim@example.net?=" }],
  ["name with a bare line feed", { name: "x\nBcc: victim@example.net" }],
  ["name with a line separator", { name: "x\u2028Bcc: victim@example.net\u0085Bcc: a@example.net" }],
])("a %s cannot bring a header or a recipient into the letter", async (_name, change) => {
  await using t = await contactApp();
  expect((await submit(t, { ...ADA, ...change })).status).toBe(201);
  const [letter, ...others] = await letters(t);
  expect([letter?.envelope_to, others]).toEqual(["boss@example.org", []]);
  const raw = Buffer.from(letter?.raw ?? "").toString();
  const head = raw.slice(0, raw.indexOf("\r\n\r\n"));
  expect(head).not.toMatch(/^(bcc|cc):/im);
  expect(raw).not.toMatch(/[^\r]\n|\r[^\n]/);
  const mail = await simpleParser(raw);
  expect([mail.to, mail.cc, mail.bcc]).toMatchObject([{ text: "boss@example.org" }, undefined, undefined]);
  expect(mail.replyTo?.text).toBe("ada@example.com");
});

test.each([
  "ada",
  "ada@",
  "@example.com",
  "ada@exa mple.com",
  "ada@example.com, victim@example.net",
  "Ada <ada@example.com>",
  "ada@example.com\r\nBcc: victim@example.net",
  "ada\r\nBcc:victim@example.net@example.com",
  '"a b"@example.com',
  `${"x".repeat(250)}@example.com`,
  "",
])("%j is no address to answer to", async (email) => {
  await using t = await contactApp();
  const answer = await submit(t, { ...ADA, email });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    422,
    { path: "body.email", code: "invalid_email" },
  ]);
  expect(await kept(t)).toEqual([]);
});

test("an address with a line break behind it is that address", async () => {
  await using t = await contactApp();
  expect((await submit(t, { ...ADA, email: "ada@example.com\r\n" })).status).toBe(201);
  expect((await kept(t))[0]?.email).toBe("ada@example.com");
});

test("nothing that is written works in the letter: no link, no heading, no picture", async () => {
  await using t = await contactApp();
  const message = [
    "~~~~",
    "# Your server was hacked",
    "[log in here](https://evil.example)",
    "![x](https://evil.example/pixel)",
    "<script>alert(1)</script> https://evil.example",
    `${"word ".repeat(100)}end`,
  ].join("\n");
  await submit(t, { ...ADA, name: "[Ada](https://evil.example)", message });
  const mail = await simpleParser(Buffer.from((await letters(t))[0]?.raw ?? ""));
  const html = typeof mail.html === "string" ? mail.html : "";
  expect(html).toContain("# Your server was hacked");
  expect(html).not.toMatch(/<(a|h1|img|script)\b/);
  const lines = (mail.text ?? "").split("\n");
  expect(lines).toContain("    # Your server was hacked");
  const longest = Math.max(...lines.filter((line) => line.includes("word")).map(({ length }) => length));
  expect(longest).toBeLessThanOrEqual(76);
});

test("texts may be as long as they are said to be, in characters", async () => {
  await using t = await contactApp({ contact_per_ip_hour: 0 });
  const longest = {
    name: "👋".repeat(100),
    email: "ada@example.com",
    message: "👋".repeat(5_000),
    subject: "👋".repeat(200),
    topic: "👋".repeat(100),
  };
  expect((await submit(t, longest)).status).toBe(201);
  expect((await kept(t))[0]).toMatchObject(longest);
  for (const [field, text] of Object.entries(longest)) {
    if (field === "email") continue;
    const answer = await submit(t, { ...longest, [field]: `${text}x` });
    expect([answer.status, answer.body.errors[0]]).toMatchObject([
      422,
      { path: `body.${field}`, code: "too_long" },
    ]);
  }
});

const FAULTS: [name: string, change: object, path: string, code: string][] = [
  ["no name", { name: undefined }, "body.name", "missing"],
  ["a blank name", { name: " \n" }, "body.name", "too_short"],
  ["a name that is null", { name: null }, "body.name", "invalid"],
  ["no e-mail", { email: undefined }, "body.email", "missing"],
  ["an e-mail that is a list", { email: ["a@example.com", "b@example.com"] }, "body.email", "invalid"],
  ["no message", { message: undefined }, "body.message", "missing"],
  ["an empty message", { message: "" }, "body.message", "too_short"],
  ["a message of control characters", { message: "\u0000\u0007" }, "body.message", "too_short"],
  ["a subject that is a number", { subject: 7 }, "body.subject", "invalid"],
  ["a topic that is an object", { topic: {} }, "body.topic", "invalid"],
  ["a start that is a word", { started_at: "now" }, "body.started_at", "invalid"],
  ["a start that is null", { started_at: null }, "body.started_at", "invalid"],
  ["a start between two milliseconds", { started_at: 1.5 }, "body.started_at", "invalid"],
];

test.each(FAULTS)("%s is refused, and does not count", async (_name, change, path, code) => {
  await using t = await contactApp({ contact_per_ip_hour: 1 });
  const answer = await submit(t, { ...ADA, ...change });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path, code }]);
  expect(await kept(t)).toEqual([]);
  expect((await submit(t, ADA)).status).toBe(201);
});

test("an address of marks that pile up on one letter is refused at once", async () => {
  await using t = await contactApp();
  const marks = `a${"\u0315\u0300\u05ae".repeat(40_000)}`;
  const started = ownMs();
  for (const email of [`${marks}@example.com`, `ada@${marks}.example`])
    expect((await submit(t, { ...ADA, email })).status).toBe(422);
  expect(ownMs() - started).toBeLessThan(2_000);
});

test("what is no JSON object is refused", async () => {
  await using t = await contactApp();
  for (const sent of ["{ not json", "[]", "null", ""]) {
    const answer = await submit(t, sent);
    expect([sent, answer.status, answer.body.errors[0].code]).toEqual([sent, 422, "json_invalid"]);
  }
  const form = await t.request("/contacts", { method: "POST", body: new URLSearchParams(ADA) });
  expect([form.status, form.body.errors[0].code]).toEqual([422, "json_invalid"]);
});

test("a request to /contacts needs no credential, and looks at none", async () => {
  await using t = await contactApp();
  for (const headers of [
    { "x-api-key": "nonsense" },
    { cookie: "service_session=x", origin: "https://evil.example" },
  ])
    expect((await submit(t, ADA, headers)).status).toBe(201);
});

test("members that are not known are ignored, also those that every object has", async () => {
  await using t = await contactApp();
  const extra = `"id": "mine", "flag": "x", "toString": 1, "__proto__": { "website": "x" }`;
  const { status, body } = await submit(t, `${JSON.stringify(ADA).slice(0, -1)}, ${extra}}`);
  expect(status).toBe(201);
  expect(await kept(t)).toMatchObject([{ id: body.id, flag: null }]);
  expect(body.id).not.toBe("mine");
});

test("a client is heard five times an hour, machine or not; others are not held up", async () => {
  await using t = await contactApp();
  for (let count = 0; count < 5; count += 1)
    expect((await submit(t, count % 2 ? ADA : { ...ADA, website: "x" }, from("192.0.2.1"))).status).toBe(201);
  const sixth = await submit(t, ADA, from("192.0.2.1"));
  expect([sixth.status, sixth.body.code]).toEqual([429, "rate_limited"]);
  const wait = Number(sixth.headers.get("retry-after"));
  expect(wait).toBeGreaterThanOrEqual(1);
  expect(wait).toBeLessThanOrEqual(3_600);
  expect((await submit(t, { ...ADA, website: "x" }, from("192.0.2.1"))).status).toBe(429);
  expect((await submit(t, ADA, from("192.0.2.2"))).status).toBe(201);
  expect(await kept(t)).toHaveLength(6);
  t.clock.advance(`${wait}s`);
  expect((await submit(t, ADA, from("192.0.2.1"))).status).toBe(201);
});

test("all addresses of one IPv6 network are one client", async () => {
  await using t = await contactApp();
  for (let count = 0; count < 5; count += 1)
    expect((await submit(t, ADA, from(`2001:db8:0:1::${count}`))).status).toBe(201);
  expect((await submit(t, ADA, from("2001:db8:0:1:ffff::6"))).status).toBe(429);
  expect((await submit(t, ADA, from("2001:db8:0:2::6"))).status).toBe(201);
});

test("a client is heard twenty times a day", async () => {
  await using t = await contactApp({ contact_per_ip_hour: 0 });
  for (let count = 0; count < 20; count += 1)
    expect((await submit(t, ADA, from("192.0.2.1"))).status).toBe(201);
  const refused = await submit(t, ADA, from("192.0.2.1"));
  expect(refused.status).toBe(429);
  const wait = Number(refused.headers.get("retry-after"));
  t.clock.advance(`${wait - 1}s`);
  expect((await submit(t, ADA, from("192.0.2.1"))).status).toBe(429);
  t.clock.advance("1s");
  expect((await submit(t, ADA, from("192.0.2.1"))).status).toBe(201);
});

test("clients whose address is not known share one limit", async () => {
  await using t = await contactApp();
  const answers = await Promise.all(Array.from({ length: 10 }, () => submit(t, ADA)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(5);
  expect(await letters(t)).toHaveLength(5);
});

test("the limits are the operator's; 0 is none", async () => {
  await using t = await contactApp({ contact_per_ip_hour: 2 });
  for (const status of [201, 201, 429]) expect((await submit(t, ADA)).status).toBe(status);
  await using open = await contactApp({ contact_per_ip_hour: 0, contact_per_ip_day: 0 });
  for (let count = 0; count < 30; count += 1) expect((await submit(open, ADA)).status).toBe(201);
});

/** With an administrator, boss@example.org. */
async function contactApp(limits: ConfigOverrides["limits"] = {}): Promise<TestApp> {
  const t = await testApp({ limits });
  await t.as("boss@example.org");
  await t.as("other@example.org");
  return t;
}

function submit(t: TestApp, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return t.request("/contacts", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** There is no socket in these tests: what the nearest proxy says stands for it. */
function from(address: string): Record<string, string> {
  return { "x-forwarded-for": address };
}

function kept(t: TestApp): Promise<ContactSubmissionRow[]> {
  return t.app.db.selectFrom("contact_submissions").selectAll().orderBy("id").execute();
}

function letters(t: TestApp): Promise<OutgoingMailRow[]> {
  return t.app.db.selectFrom("outgoing_mails").selectAll().orderBy("id").execute();
}
