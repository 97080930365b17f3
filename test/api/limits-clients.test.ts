import { describe, expect, test } from "bun:test";
import { type TestApp, testApp } from "../support/app.ts";
import { LISTEN, openDoor } from "./door.ts";

/** Both forms in which the socket may name its peer. */
const LOOPBACK = ["127.0.0.0/8", "::ffff:127.0.0.0/104"];

/** Asks for a code from each of these, over a real socket, each time for another address; two an hour are allowed. */
async function statusesOf(t: TestApp, all: Record<string, string>[]): Promise<number[]> {
  await using door = await openDoor(t);
  const statuses: number[] = [];
  for (const headers of all) {
    const { status } = await door.request("/auth/request-code", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ email: `${Bun.randomUUIDv7()}@example.com` }),
    });
    statuses.push(status);
  }
  return statuses;
}

function serverBehind(trusted_proxies: string[]): Promise<TestApp> {
  return testApp({ server: { ...LISTEN, trusted_proxies }, limits: { code_per_ip_hour: 2 } });
}

const from = (forwarded: string) => ({ "x-forwarded-for": forwarded });

describe("what one client may do on public endpoints in an hour", () => {
  test("counts for the client that a trusted proxy names, and not for the proxy", async () => {
    await using t = await serverBehind(LOOPBACK);
    const [one, other] = [from("198.51.100.7"), from("198.51.100.8")];
    expect(await statusesOf(t, [one, one, one, other, other, other])).toEqual([202, 202, 429, 202, 202, 429]);
    t.clock.advance("30m");
    expect(await statusesOf(t, [one])).toEqual([202]);
  });

  test("is not widened by what a client writes before the proxy's own word, nor by other headers", async () => {
    await using t = await serverBehind(LOOPBACK);
    const forged = [
      from("198.51.100.7"),
      from("203.0.113.1, 198.51.100.7"),
      from("203.0.113.2, 127.0.0.1, 198.51.100.7"),
      from("127.0.0.9,198.51.100.7:4711"),
      from("203.0.113.3, ::ffff:198.51.100.7, 127.0.0.2"),
      { ...from("198.51.100.7"), forwarded: "for=203.0.113.4", "x-real-ip": "203.0.113.5" },
    ];
    expect(await statusesOf(t, forged)).toEqual([202, 202, 429, 429, 429, 429]);
  });

  test("is not widened by any header of a peer that is no proxy of ours", async () => {
    for (const trusted_proxies of [[], ["10.0.0.0/8"]]) {
      await using t = await serverBehind(trusted_proxies);
      const forged = [from("198.51.100.1"), from("198.51.100.2"), from("10.0.0.1"), {}, from("::1")];
      expect(await statusesOf(t, forged)).toEqual([202, 202, 429, 429, 429]);
    }
  });

  test("is one for all addresses of a line: of IPv6 those of a /64", async () => {
    await using t = await serverBehind(LOOPBACK);
    const line = ["2001:db8:1:2::1", "[2001:db8:1:2:ffff::9]:443", "2001:DB8:1:2:3:4:5:6"].map(from);
    expect(await statusesOf(t, line)).toEqual([202, 202, 429]);
    expect(await statusesOf(t, [from("2001:db8:1:3::1")])).toEqual([202]);
  });
});
