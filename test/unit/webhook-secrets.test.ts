import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { mintSecret } from "../../src/resources/webhooks/secrets.ts";
import { sign } from "../../src/resources/webhooks/signature.ts";

const SIGNED = { id: "evt_1", type: "message.completed", timestamp: 1_700_000_000, attempt: 2 } as const;

test("signs the agreed test vector", () => {
  const headers = sign(["whsec_test"], { ...SIGNED, body: '{"id":"evt_1"}' });
  expect(headers["service-signature"]).toBe(
    "t=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925",
  );
});

test("names the event, the attempt and this program in every delivery", () => {
  expect(sign([mintSecret()], { ...SIGNED, body: "{}" })).toMatchObject({
    "content-type": "application/json",
    "user-agent": expect.stringMatching(/^Mailwright\/\d/),
    "service-event-id": "evt_1",
    "service-event-type": "message.completed",
    "service-delivery-attempt": "2",
    "webhook-id": "evt_1",
    "webhook-timestamp": "1700000000",
  });
});

test("after a change of the secret each of the two verifies, here and by Standard Webhooks", () => {
  const secrets = [mintSecret(), mintSecret()];
  const timestamp = Math.floor(Date.now() / 1_000);
  const body = JSON.stringify({ id: "evt_1", words: "Grüße, 世界 🌍" });
  const headers = sign(secrets, { ...SIGNED, timestamp, body });
  expect(headers["service-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  for (const secret of secrets) {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    const alone = sign([secret], { ...SIGNED, timestamp, body })["service-signature"] ?? "";
    expect(headers["service-signature"]).toContain(alone.split(",")[1] ?? "nothing");
  }
  expect(() => new Webhook(mintSecret()).verify(body, headers)).toThrow();
});

test("a secret is whsec_ and 32 random bytes in base64", () => {
  const secret = mintSecret();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(mintSecret()).not.toBe(secret);
});
