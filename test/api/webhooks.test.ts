import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { type HookDesk, hookDesk } from "./hook-desk.ts";

const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;
const ADDRESS = "https://hooks.example.com/mailwright";
const ALL = ["message.received", "message.completed", "message.failed", "message.skipped"];

describe("making an endpoint", () => {
  test("answers 201 with its secret, which no list and no change shows again", async () => {
    await using t = await hookDesk();
    const { status, body, headers } = await t.ada.post("/v1/webhooks", {
      url: ADDRESS,
      event_types: ["message.completed", "message.failed"],
      description: "Ticket system",
    });
    expect([status, headers.get("cache-control")]).toEqual([201, "no-store"]);
    const { secret, ...endpoint } = body;
    expect(secret).toMatch(SECRET);
    expect(endpoint).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      url: ADDRESS,
      event_types: ["message.completed", "message.failed"],
      enabled: true,
      consecutive_failures: 0,
      disabled_reason: null,
      description: "Ticket system",
      created: t.app.now(),
      updated: t.app.now(),
    });
    expect((await t.ada.get("/v1/webhooks")).body).toEqual([endpoint]);
    expect((await t.ada.get(`/v1/webhooks/${body.id}`)).body).toEqual(endpoint);
    expect((await t.ada.patch(`/v1/webhooks/${body.id}`, {})).body).toEqual(endpoint);
  });

  test("keeps the secret encrypted, bound to its endpoint", async () => {
    await using t = await hookDesk();
    const one = await t.hook();
    const two = await t.hook();
    expect(one.secret).not.toBe(two.secret);
    const rows = await t.app.db.selectFrom("webhook_endpoints").selectAll().orderBy("id").execute();
    for (const row of rows) expect(Buffer.from(row.sealed).toString("latin1")).not.toContain("whsec_");
    expect(() => t.app.secrets.open(rows[0]!.sealed, two.id)).toThrow();
    expect(JSON.parse(t.app.secrets.open(rows[0]!.sealed, one.id))).toEqual({
      secret: one.secret,
      old_secret: null,
    });
  });

  test("one that is made switched off stays off", async () => {
    await using t = await hookDesk();
    expect(await t.hook({ enabled: false })).toMatchObject({ enabled: false, disabled_reason: null });
  });

  test("the same address may be used twice", async () => {
    await using t = await hookDesk();
    await t.hook();
    await t.hook();
    expect((await t.ada.get("/v1/webhooks")).body).toHaveLength(2);
  });

  test("lists the oldest first, and nobody else's", async () => {
    await using t = await hookDesk();
    const ids = [(await t.hook()).id, (await t.hook()).id, (await t.hook()).id];
    const listed = (await t.ada.get("/v1/webhooks")).body as { id: string }[];
    expect(listed.map(({ id }) => id)).toEqual(ids);
    const bob = await t.as("bob@example.com");
    expect((await bob.get("/v1/webhooks")).body).toEqual([]);
  });
});

describe("the types of events", () => {
  let t: HookDesk;
  beforeAll(async () => {
    t = await hookDesk();
  });
  afterAll(() => t[Symbol.asyncDispose]());

  test.each([
    ["all four", ALL, ALL],
    ["the star for all", ["*"], ALL],
    ["the star beside one of them", ["message.failed", "*"], ALL],
    ["one that is named twice, once", ["message.failed", "message.failed"], ["message.failed"]],
    ["another order", ["message.failed", "message.completed"], ["message.failed", "message.completed"]],
  ])("may be %s", async (_claim, given, kept) => {
    const made = await t.hook({ event_types: given });
    expect(made.event_types).toEqual(kept);
    const changed = await t.ada.patch(`/v1/webhooks/${made.id}`, { event_types: given });
    expect(changed.body.event_types).toEqual(kept);
  });

  test.each([
    ["none", [], "too_few"],
    ["an unknown one", ["message.completed", "message.deleted"], "unknown_value"],
    ["null", null, "invalid"],
    ["one text", "message.completed", "invalid"],
    ["a number", [1], "unknown_value"],
    ["null among them", [null], "unknown_value"],
    ["another case", ["MESSAGE.COMPLETED"], "unknown_value"],
  ])("are not %s", async (_claim, event_types, code) => {
    const before = (await t.ada.get("/v1/webhooks")).body.length;
    const { id } = await t.hook();
    const made = await t.ada.post("/v1/webhooks", { url: t.hook_url, event_types });
    const changed = await t.ada.patch(`/v1/webhooks/${id}`, { event_types });
    for (const { status, body } of [made, changed]) {
      expect(status).toBe(422);
      expect(body.errors[0]).toMatchObject({ path: expect.stringMatching(/^body\.event_types/), code });
    }
    expect((await t.ada.get("/v1/webhooks")).body).toHaveLength(before + 1);
  });
});

describe("the address", () => {
  let t: HookDesk;
  let id: string;
  beforeAll(async () => {
    t = await hookDesk({ webhooks: { allow: ["127.0.0.1", "10.9.0.0/16", "nas.home.arpa", "printer"] } });
    t.dns.set("public.example.com", "A", ["93.184.216.34"]);
    t.dns.set("private.example.com", "A", ["10.0.0.5"]);
    t.dns.set("mixed.example.com", "A", ["93.184.216.34", "127.0.0.2"]);
    t.dns.set("mapped.example.com", "AAAA", ["::ffff:169.254.169.254"]);
    t.dns.set("lan.example.com", "A", ["10.9.1.1"]);
    t.dns.set("half.example.com", "A", ["10.9.1.1", "93.184.216.34"]);
    t.dns.fault("broken.example.com", "servfail");
    id = (await t.hook()).id;
  });
  afterAll(() => t[Symbol.asyncDispose]());

  test.each([
    ["a public name", "https://public.example.com/hook?key=1"],
    ["a name that the DNS does not know yet", "https://unknown.example.com/"],
    ["a name whose server fails", "https://broken.example.com/"],
    ["a port of its own", "https://public.example.com:8443/hook"],
    ["a public address", "https://93.184.216.34/hook"],
    ["a public address of version 6", "https://[2606:4700:4700::1111]/hook"],
    ["letters of another script", "https://bücher.example.com/häken"],
    ["a name with the dot of the root", "https://public.example.com./hook"],
    ["2,048 characters", `https://public.example.com/${"x".repeat(2_048 - 27)}`],
    ["a host that the operator allows, over plain http", "http://127.0.0.1:9/hook"],
    ["a name that the operator allows, over plain http", "http://nas.home.arpa/hook"],
    ["a single word that the operator allows", "https://printer/hook"],
    ["a name in a network that the operator allows", "https://lan.example.com/hook"],
    ["one over plain http", "http://lan.example.com/hook"],
    ["one of whose addresses the operator allows some", "https://half.example.com/hook"],
  ])("may be %s", async (_claim, url) => {
    const changed = await t.ada.patch(`/v1/webhooks/${id}`, { url });
    expect([changed.status, changed.body.url]).toEqual([200, url]);
    const made = await t.ada.post("/v1/webhooks", { url, event_types: ["*"] });
    expect([made.status, made.body.url]).toEqual([201, url]);
    await t.ada.delete(`/v1/webhooks/${made.body.id}`);
  });

  test.each([
    ["plain http", "http://public.example.com/", "https_required"],
    [
      "plain http to what the operator does not allow altogether",
      "http://half.example.com/",
      "https_required",
    ],
    ["another scheme", "ftp://public.example.com/", "invalid_url"],
    ["no scheme", "public.example.com/hook", "invalid_url"],
    ["no host", "https://", "invalid_url"],
    ["nothing", "", "invalid_url"],
    ["a user name", "https://ada@public.example.com/", "invalid_url"],
    ["a password", "https://ada:secret@public.example.com/", "invalid_url"],
    ["an empty user name", "https://@public.example.com/", "invalid_url"],
    ["an empty user name and password", "https://:@public.example.com/", "invalid_url"],
    ["a fragment", "https://public.example.com/#top", "invalid_url"],
    ["an empty fragment", "https://public.example.com/#", "invalid_url"],
    ["a blank", "https://public.example.com/a b", "invalid_url"],
    ["a line end", "https://public.example.com/\r\nX: y", "invalid_url"],
    ["a backslash", "https://public.example.com\\@127.0.0.1/", "invalid_url"],
    ["a hidden character", "https://public.example\u{200b}.com/", "invalid_url"],
    ["a single word", "https://intranet/", "not_public"],
    ["localhost", "https://localhost/", "not_public"],
    ["localhost with two dots", "https://localhost../", "not_public"],
    ["a name below localhost", "https://app.localhost./", "not_public"],
    ["a name of multicast DNS", "https://nas.local/", "not_public"],
    ["an internal name", "https://api.corp.INTERNAL/", "not_public"],
    ["a name of a home", "https://router.home.arpa/", "not_public"],
    ["an onion", "https://abcdefghij.onion/", "not_public"],
    ["a loopback address", "https://127.0.0.2/", "not_public"],
    ["a loopback address in other forms", "https://0x7f.0.2/", "not_public"],
    ["a loopback address as one number", "https://2130706434/", "not_public"],
    ["loopback of version 6", "https://[::1]/", "not_public"],
    ["an address inside of another", "https://[::ffff:10.0.0.1]/", "not_public"],
    ["the metadata of a cloud", "https://169.254.169.254/latest/", "not_public"],
    ["a name with a private address", "https://private.example.com/", "not_public"],
    ["a name with a private address among others", "https://mixed.example.com/", "not_public"],
    ["a name with an address inside of another", "https://mapped.example.com/", "not_public"],
    ["2,049 characters", `https://public.example.com/${"x".repeat(2_049 - 27)}`, "too_long"],
    ["null", null, "invalid"],
    ["a number", 7, "invalid"],
  ])("may not be %s", async (_claim, url, code) => {
    const before = (await t.ada.get("/v1/webhooks")).body;
    const made = await t.ada.post("/v1/webhooks", { url, event_types: ["*"] });
    const changed = await t.ada.patch(`/v1/webhooks/${id}`, { url });
    for (const { status, body } of [made, changed])
      expect([status, body.errors?.[0]]).toEqual([422, expect.objectContaining({ path: "body.url", code })]);
    expect((await t.ada.get("/v1/webhooks")).body).toEqual(before);
  });

  test("that is refused is told how it may be allowed", async () => {
    const ask = async (url: string) =>
      (await t.ada.post("/v1/webhooks", { url, event_types: ["*"] })).body.detail;
    expect(await ask("https://private.example.com/")).toContain(
      'can add "private.example.com" to webhooks.allow',
    );
    expect(await ask("https://router.home.arpa/")).toContain('can add "router.home.arpa" to webhooks.allow');
  });

  test("of an exception for connections is none for webhooks", async () => {
    await using other = await hookDesk({ egress: { allow: ["127.0.0.1"] }, webhooks: { allow: [] } });
    const { status } = await other.ada.post("/v1/webhooks", {
      url: "http://127.0.0.1:9/",
      event_types: ["*"],
    });
    expect(status).toBe(422);
  });
});

describe("changing an endpoint", () => {
  test("leaves alone what is absent, and dates the change", async () => {
    await using t = await hookDesk();
    const { secret: _, ...made } = await t.hook({ description: "A" });
    t.clock.advance("1m");
    const untouched = await t.ada.patch(`/v1/webhooks/${made.id}`, { unknown: 1 });
    const { warnings, ...same } = untouched.body;
    expect([untouched.status, same, warnings.length]).toEqual([200, made, 1]);
    const changed = await t.ada.patch(`/v1/webhooks/${made.id}`, { description: "B" });
    expect(changed.body).toEqual({ ...made, description: "B", updated: made.updated + 60 });
    const cleared = await t.ada.patch(`/v1/webhooks/${made.id}`, { description: null });
    expect(cleared.body.description).toBeNull();
    expect((await t.ada.get("/v1/webhooks")).body).toEqual([cleared.body]);
  });

  test.each([
    ["enabled", null],
    ["enabled", "yes"],
    ["description", 7],
    ["description", "x".repeat(501)],
  ])("refuses a bad %s: %p", async (name, value) => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const { status, body } = await t.ada.patch(`/v1/webhooks/${id}`, { [name]: value });
    expect([status, body.errors[0].path]).toEqual([422, `body.${name}`]);
  });

  test("switching it on forgets its failures and why it was off", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const failing = { enabled: 0, consecutive_failures: 5, disabled_reason: "Too many failures" };
    await t.app.db.updateTable("webhook_endpoints").set(failing).where("id", "=", id).execute();
    expect((await t.ada.patch(`/v1/webhooks/${id}`, { description: "x" })).body).toMatchObject({
      enabled: false,
      consecutive_failures: 5,
      disabled_reason: "Too many failures",
    });
    expect((await t.ada.patch(`/v1/webhooks/${id}`, { enabled: true })).body).toMatchObject({
      enabled: true,
      consecutive_failures: 0,
      disabled_reason: null,
    });
  });

  test("one that its owner switches off is off for no other reason any more", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const rested = { enabled: 0, disabled_reason: "Beyond the plan" };
    await t.app.db.updateTable("webhook_endpoints").set(rested).where("id", "=", id).execute();
    const { body } = await t.ada.patch(`/v1/webhooks/${id}`, { enabled: false });
    expect(body).toMatchObject({ enabled: false, disabled_reason: null });
  });

  test("switching on one that is on forgets its failures too", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const failing = { consecutive_failures: 3 };
    await t.app.db.updateTable("webhook_endpoints").set(failing).where("id", "=", id).execute();
    expect((await t.ada.patch(`/v1/webhooks/${id}`, { enabled: true })).body.consecutive_failures).toBe(0);
  });
});

describe("an id that is no endpoint of the caller", () => {
  const ROUTES: [method: "get" | "post" | "patch" | "delete", path: string, body?: object][] = [
    ["patch", "", {}],
    ["delete", ""],
    ["post", "/test"],
    ["get", "/secret"],
    ["post", "/rotate-secret"],
    ["get", "/deliveries"],
    ["post", `/deliveries/${Bun.randomUUIDv7()}/retry`],
    ["post", "/replay", { since: 0 }],
  ];
  test("is 404 on every route, malformed or unknown", async () => {
    await using t = await hookDesk();
    for (const [method, path, body = {}] of ROUTES)
      for (const id of ["nonsense", "%27", Bun.randomUUIDv7(), "x".repeat(3_000)]) {
        const answer = await t.ada[method](`/v1/webhooks/${id}${path}`, body as never);
        expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 404, "not_found"]);
        expect(answer.body.detail).toBe("There is no such webhook endpoint.");
      }
  });
});

describe("the plan", () => {
  const TWO = { plans: { team: { webhooks: 2 } } };

  test("allows so many endpoints, switched off ones too", async () => {
    await using t = await hookDesk(TWO);
    await t.hook({ enabled: false });
    const second = await t.hook();
    const { status, body } = await t.ada.post("/v1/webhooks", { url: t.hook_url, event_types: ["*"] });
    expect([status, body.code, body.limit, body.current]).toEqual([403, "plan_limit_reached", 2, 2]);
    await t.ada.delete(`/v1/webhooks/${second.id}`);
    expect((await t.ada.post("/v1/webhooks", { url: t.hook_url, event_types: ["*"] })).status).toBe(201);
  });

  test("is kept to by many at the same time", async () => {
    await using t = await hookDesk(TWO);
    const body = { url: t.hook_url, event_types: ["*"] };
    const answers = await Promise.all(Array.from({ length: 10 }, () => t.ada.post("/v1/webhooks", body)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(2);
    expect((await t.ada.get("/v1/webhooks")).body).toHaveLength(2);
  });

  test("keeps off what a larger plan had, until another one is off", async () => {
    await using t = await hookDesk({ plans: { team: { webhooks: 3 }, free: { webhooks: 2 } } });
    const [one, , three] = [await t.hook(), await t.hook(), await t.hook({ enabled: false })];
    await t.app.db.updateTable("users").set({ plan: "free" }).where("id", "=", t.ada.user.id).execute();
    const refused = await t.ada.patch(`/v1/webhooks/${three.id}`, { enabled: true });
    expect([refused.status, refused.body.code]).toEqual([403, "plan_limit_reached"]);
    expect([refused.body.limit, refused.body.current]).toEqual([2, 2]);
    // One that is on may be switched on again, which forgets its failures.
    expect((await t.ada.patch(`/v1/webhooks/${one.id}`, { enabled: true })).status).toBe(200);
    await t.ada.patch(`/v1/webhooks/${one.id}`, { enabled: false });
    expect((await t.ada.patch(`/v1/webhooks/${three.id}`, { enabled: true })).body.enabled).toBe(true);
  });
});

describe("the secret", () => {
  test("is shown when asked for, and kept by nobody on the way", async () => {
    await using t = await hookDesk();
    const { id, secret } = await t.hook();
    const { status, body, headers } = await t.ada.get(`/v1/webhooks/${id}/secret`);
    expect([status, body, headers.get("cache-control")]).toEqual([200, { secret }, "no-store"]);
  });

  test("can be changed, and for 24 hours the one before signs as well", async () => {
    await using t = await hookDesk();
    const { id, secret: old } = await t.hook();
    const rotated = await t.ada.post(`/v1/webhooks/${id}/rotate-secret`);
    expect([rotated.status, rotated.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(rotated.body).toEqual({ secret: expect.stringMatching(SECRET) });
    const { secret } = rotated.body;
    expect(secret).not.toBe(old);
    expect((await t.ada.get(`/v1/webhooks/${id}/secret`)).body).toEqual({ secret });
    t.clock.advance("23h");
    expect(await signers(t, id, [secret, old])).toEqual([true, true]);
    t.clock.advance("2h");
    expect(await signers(t, id, [secret, old])).toEqual([true, false]);
  });

  test("that is changed twice in a day is signed with by each for a day of its own", async () => {
    await using t = await hookDesk();
    const { id, secret: first } = await t.hook();
    const second = (await t.ada.post(`/v1/webhooks/${id}/rotate-secret`)).body.secret;
    t.clock.advance("12h");
    const third = (await t.ada.post(`/v1/webhooks/${id}/rotate-secret`)).body.secret;
    expect(await signers(t, id, [third, second, first])).toEqual([true, true, true]);
    t.clock.advance("13h");
    expect(await signers(t, id, [third, second, first])).toEqual([true, true, false]);
    t.clock.advance("12h");
    expect(await signers(t, id, [third, second, first])).toEqual([true, false, false]);
  });

  test("that is changed again and again leaves no more than six signatures", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    for (let count = 0; count < 9; count += 1) await t.ada.post(`/v1/webhooks/${id}/rotate-secret`);
    await t.ada.post(`/v1/webhooks/${id}/test`);
    expect(t.received.at(-1)?.headers["webhook-signature"]?.split(" ")).toHaveLength(6);
  });

  test("of another master key is said to be lost, and a new one mends it", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const elsewhere = { sealed: t.app.secrets.seal('{"secret":"x"}', "another id") };
    await t.app.db.updateTable("webhook_endpoints").set(elsewhere).where("id", "=", id).execute();
    for (const answer of [
      await t.ada.get(`/v1/webhooks/${id}/secret`),
      await t.ada.post(`/v1/webhooks/${id}/test`),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([409, "conflict"]);
      expect(answer.body.fix).toContain("rotate-secret");
    }
    const { secret } = (await t.ada.post(`/v1/webhooks/${id}/rotate-secret`)).body;
    expect(await signers(t, id, [secret])).toEqual([true]);
  });
});

/** Which of the secrets a delivery to the endpoint verifies with, at the time of the test's clock. */
async function signers(t: HookDesk, id: string, secrets: string[]): Promise<boolean[]> {
  await t.ada.post(`/v1/webhooks/${id}/test`);
  const { headers, body } = t.received.at(-1) ?? { headers: {}, body: "" };
  const [time, ...ours] = (headers["service-signature"] ?? "").split(",");
  const twins = (headers["webhook-signature"] ?? "").split(" ");
  return secrets.map((secret) => {
    const v1 = new Bun.CryptoHasher("sha256", secret).update(`${time?.slice(2)}.${body}`).digest("hex");
    const moment = new Date(Number(headers["webhook-timestamp"]) * 1_000);
    const twin = new Webhook(secret).sign(headers["webhook-id"] ?? "", moment, body);
    const fits = ours.includes(`v1=${v1}`);
    expect(twins.includes(twin)).toBe(fits);
    return fits;
  });
}
