import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { checkSignature } from "../../src/dashboard/pages/webhooks/signature.ts";
import { type Received, startReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { type Dashboard, dashboard, TASK_LOOKS, type Visit } from "./house.ts";
import { hasChromium } from "../support/chromium.ts";

/** The vector that the guide for receivers gives. */
const VECTOR = {
  secret: "whsec_test",
  body: '{"id":"evt_1"}',
  headers:
    "Service-Signature: t=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925",
};
const THEN = 1_700_000_000;

describe("the check of a signature", () => {
  const at = (now: number, more: object = {}) => ({ now, ...more });
  const kindOf = async (pasted: object, known = at(THEN)) =>
    (await checkSignature({ ...VECTOR, ...pasted }, known)).kind;

  test("finds what was signed genuine, among other headers and alone", async () => {
    const [, alone = ""] = VECTOR.headers.split(": ");
    const others = `POST /hook HTTP/1.1\nService-Event-Id: evt_1\n${VECTOR.headers}\nHost: example.com`;
    const json = JSON.stringify({ "service-signature": alone, host: "example.com" });
    for (const headers of [VECTOR.headers, alone, others, json])
      expect([headers, await kindOf({ headers })]).toEqual([headers, "genuine"]);
  });

  test("takes one of two signatures, as deliveries have them on the day of a new secret", async () => {
    const [head, v1] = VECTOR.headers.split(",");
    expect(await kindOf({ headers: `${head},v1=${"0".repeat(64)},${v1}` })).toBe("genuine");
  });

  test("says too old after five minutes, and not before", async () => {
    expect(await kindOf({}, at(THEN + 300))).toBe("genuine");
    expect(await kindOf({}, at(THEN + 301))).toBe("too_old");
    expect(await kindOf({}, at(THEN - 301))).toBe("too_early");
  });

  test("says that there is no signature", async () => {
    for (const headers of ["", "Host: example.com", "Service-Signature: t=,v1=", "Service-Signature: v1=00"])
      expect([headers, await kindOf({ headers })]).toEqual([headers, "no_signature"]);
  });

  test("knows a body that was read and written anew, or got a line break, as changed", async () => {
    for (const body of ['{ "id": "evt_1" }', '{\n  "id": "evt_1"\n}', `${VECTOR.body}\n`, ` ${VECTOR.body}`])
      expect([body, await kindOf({ body })]).toEqual([body, "changed_body"]);
  });

  test("knows another secret by what the endpoint has, and one without its beginning", async () => {
    expect(await kindOf({ secret: "test" })).toBe("other_secret");
    const known = at(THEN, { endpoint_secret: VECTOR.secret });
    expect(await kindOf({ secret: "whsec_other" }, known)).toBe("other_secret");
  });

  test("tells a changed body from another secret by what was sent, and says so where nobody can know", async () => {
    const forged = { body: '{"id":"evt_2"}' };
    expect(await kindOf(forged)).toBe("changed_or_other");
    expect(await kindOf(forged, at(THEN, { endpoint_secret: VECTOR.secret }))).toBe("changed_body");
    expect(await checkSignature({ ...VECTOR, ...forged }, at(THEN, { sent_body: VECTOR.body }))).toEqual({
      kind: "changed_body",
      how: 'What was sent differs from character 12 on: “1"}” was sent, “2"}” is here.',
    });
    const known = at(THEN, { sent_body: VECTOR.body });
    expect(await kindOf({ secret: "whsec_other" }, known)).toBe("other_secret");
  });
});

describe.skipIf(!hasChromium)("webhooks", () => {
  let at: Dashboard;
  let receiver: WebhookReceiver;
  const no_content = () => new Response(null, { status: 204 });

  beforeAll(async () => {
    receiver = startReceiver();
    at = await dashboard({
      env: { MAILWRIGHT_WEBHOOKS__ALLOW: "127.0.0.1", MAILWRIGHT_WEBHOOKS__BACKOFF: "0" },
    });
    const { id } = await at.api<{ id: string }>("POST", "/connections", { kind: "demo" });
    await at.api("POST", "/inboxes", { label: "Support", default_connection_id: id });
  }, 120_000);

  beforeEach(async () => {
    const endpoints = await at.api<{ id: string }[]>("GET", "/v1/webhooks");
    for (const { id } of endpoints) await at.api("DELETE", `/v1/webhooks/${id}`);
  });

  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
  });

  /** As somebody makes one: leads to its page. */
  async function makeEndpoint({ page, open }: Visit, name: string): Promise<void> {
    await open("Webhooks");
    await page.getByRole("button", { name: "New endpoint" }).click();
    await page.getByLabel("Address").fill(receiver.url);
    await page.getByLabel("What it is for").fill(name);
    await page.getByLabel("A message was left alone").uncheck();
    await page.getByRole("button", { name: "Make the endpoint" }).click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole("button", { name: "Open the endpoint" }).click();
    await page.getByRole("heading", { name, level: 1 }).waitFor();
  }

  test.each(TASK_LOOKS)("%s: an endpoint is made and tested, and its log sends again", async (name, look) => {
    await using visit = await at.visit({ look });
    const { page } = visit;
    receiver.answer = no_content;
    await makeEndpoint(visit, `Tickets ${name}`);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("It arrived: your program answered 204").waitFor();
    receiver.answer = () => new Response("The disk is full.", { status: 507 });
    await at.api("POST", "/v1/messages", { instruction: "Summarise this", content: "Eggs cost 3 francs." });
    await page.reload();
    const row = page.getByRole("listitem").filter({ hasText: "A message was answered" }).last();
    await row.getByText("Failed").waitFor();
    await row.locator("summary").click();
    await row.getByText("Your program answered 507").waitFor();
    const sent = await row.getByRole("group", { name: "What was sent" }).innerText();
    const received = receiver.received.findLast(({ body }) => sent.endsWith(body));
    expect(sent).toContain(`service-event-id: ${received?.headers["service-event-id"]}`);
    expect(await row.getByRole("group", { name: "What came back" }).innerText()).toContain(
      "The disk is full.",
    );
    await visit.look("webhook-delivery");
    receiver.answer = no_content;
    await row.getByRole("button", { name: "Send it again" }).click();
    await row.getByText("Delivered").waitFor();
    expect(receiver.received.at(-1)?.event).toEqual(received?.event);
    await page.getByRole("tab", { name: "Secret and signature" }).click();
    await paste(page, receiver.received.at(-1));
    await page.getByRole("button", { name: "Check it" }).click();
    await page.getByText("Genuine: this secret signed exactly this body").waitFor();
    await visit.look("webhook-signature");
    await visit.open("Webhooks");
    await visit.look("webhooks");
  });

  test("a signature that does not fit is told the reason", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    receiver.answer = no_content;
    await makeEndpoint(visit, "Reasons");
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("It arrived").waitFor();
    await page.getByRole("tab", { name: "Secret and signature" }).click();
    const received = receiver.received.at(-1);
    const { body = "" } = received ?? {};
    await paste(page, received);
    const judge = async (words: string) => {
      await page.getByRole("button", { name: "Check it" }).click();
      await page.getByText(words).waitFor();
    };
    await page.getByLabel("Body").fill(body.replace("done", "gone"));
    await judge('“done","result":');
    await page.getByLabel("Body").fill(JSON.stringify(JSON.parse(body), null, 2));
    await judge("Changed body: this is not what was signed. It was read as JSON and written anew");
    await page.getByLabel("Body").fill(body);
    await page.getByLabel("Secret", { exact: true }).fill("whsec_other");
    await judge("Other secret: this one did not sign it.");
    await page.getByLabel("Headers").fill(VECTOR.headers);
    await page.getByLabel("Body").fill(VECTOR.body);
    await page.getByLabel("Secret", { exact: true }).fill(VECTOR.secret);
    await judge("Too old: the signature fits, but it was made");
  });

  test("an endpoint is changed, changed back, given a new secret, paused and deleted", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await makeEndpoint(visit, "Wiki");
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByLabel("What it is for").fill("Library");
    await page.getByLabel("A message was left alone").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Library", level: 1 }).waitFor();
    await page.getByText("(message.skipped)").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { name: "Wiki", level: 1 }).waitFor();
    expect(await page.getByText("(message.skipped)").count()).toBe(0);
    await page.getByRole("tab", { name: "Secret and signature" }).click();
    await page.getByRole("button", { name: "Show the secret" }).click();
    const secret = await page.getByText(/^whsec_/).innerText();
    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByRole("button", { name: "Make a new secret" }).click();
    await page.getByText("Here is the new secret.").waitFor();
    expect(await page.getByText(/^whsec_/).innerText()).not.toBe(secret);
    await page.getByRole("switch", { name: "Send to it" }).click();
    await page.getByText("Switched off").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete the endpoint" }).click();
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Wiki" }).waitFor({ state: "detached" });
  });
});

/** What came in, with the secret of the endpoint. */
async function paste(page: Visit["page"], received: Received | undefined): Promise<void> {
  const lines = Object.entries(received?.headers ?? {}).map(([header, value]) => `${header}: ${value}`);
  await page.getByLabel("Headers").fill(lines.join("\n"));
  await page.getByLabel("Body").fill(received?.body ?? "");
  const secret = page.waitForResponse(/\/secret$/);
  await page.getByRole("button", { name: "Take this endpoint’s" }).click();
  await secret;
  await page.getByRole("button", { name: "Take this endpoint’s", disabled: false }).waitFor();
}
