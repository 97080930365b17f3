import { expect, test } from "bun:test";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { connectAs, type RawClient, upToData } from "../interop/raw-client.ts";
import { mailOf, OWNER, smtpDoor } from "../interop/smtp-door.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { until } from "../support/until.ts";

const BEHIND_PROXY = { proxy_protocol: ["127.0.0.0/8"], trusted_networks: ["203.0.113.0/24"] };

/** A door that takes so many sessions at once, and a way to it for whom a test names. */
async function crowdedDoor(max_connections: number, more = {}, others: ConfigOverrides = {}) {
  const door = await smtpDoor({ ...others, smtp: { ...BEHIND_PROXY, max_connections, ...more } });
  const open: { address: string; client: RawClient }[] = [];
  return {
    inbox: door.inbox,
    async greet(address: string): Promise<string> {
      const { client, greeting } = await connectAs(door.address, address);
      open.push({ address, client });
      return greeting;
    },
    async greetAll(addresses: string[]): Promise<void> {
      for (const address of addresses) expect(await this.greet(address)).toStartWith("220 ");
    },
    client(address: string): RawClient {
      const found = open.find((one) => one.address === address);
      if (!found) throw new Error(`${address} has not connected`);
      return found.client;
    },
    async expectOpen(addresses: string[]): Promise<void> {
      for (const address of addresses)
        expect([address, await this.client(address).say("NOOP")]).toEqual([
          address,
          expect.stringMatching(/^250 /),
        ]);
    },
    async [Symbol.asyncDispose]() {
      for (const { client } of open) client[Symbol.dispose]();
      await door[Symbol.asyncDispose]();
    },
  };
}

test("a full door has room for a newcomer: the idlest session of the network with the most gives it up, of networks within networks", async () => {
  const [lone, other] = ["192.0.2.1", "2001:db8:2::1"];
  const [busy, idle, late] = ["2001:db8:1:100::1", "2001:db8:1:101::1", "2001:db8:1:102::1"];
  const beside = "2001:db8:1:200::1";
  await using door = await crowdedDoor(6);
  await door.greetAll([lone, beside, busy, idle, late, other]);
  expect(await door.client(busy).say("EHLO client.test")).toStartWith("250");
  expect(await door.client(busy).say(`MAIL FROM:<${OWNER}>`)).toStartWith("250 ");

  const newcomer = "198.51.100.1";
  await door.greetAll([newcomer]);
  expect(await door.client(idle).reply()).toBe(
    "421 4.7.0 Too many connections are open, and yours is one of many; please try again later",
  );
  await door.expectOpen([lone, other, busy, late, beside, newcomer]);

  // It would be one of the same crowd, whose /56 has two more and whose idlest session is of its own /64.
  expect(await door.greet("2001:db8:1:102::2")).toStartWith("421 ");
  await door.expectOpen([lone, other, busy, late, beside, newcomer]);
});

test("of networks with one session each, the idlest gives up its room", async () => {
  await using door = await crowdedDoor(3);
  await door.greetAll(["192.0.2.1", "198.51.100.1", "2001:db8::1", "2001:db8:1::1"]);
  expect(await door.client("192.0.2.1").reply()).toStartWith("421 4.7.0 ");
  await door.expectOpen(["198.51.100.1", "2001:db8::1", "2001:db8:1::1"]);
});

test("no room is made of a session whose whole mail is being answered, nor of the operator's", async () => {
  await using dns = await startDnsServer();
  dns.fault("*", "drop");
  await using door = await crowdedDoor(2, {}, { dns: { servers: [dns.address] } });
  await door.greetAll(["203.0.113.9", "192.0.2.1"]);
  const giver = door.client("192.0.2.1");
  await upToData(giver, OWNER, [door.inbox]);
  giver.write(`${mailOf("One")}.\r\n`);
  // Its sender is being looked up.
  await until(() => dns.queries.length !== 0);
  for (const address of ["198.51.100.1", "203.0.113.7"])
    expect(await door.greet(address)).toStartWith("421 ");
  await door.expectOpen(["203.0.113.9"]);
  dns.fault("*", undefined);
  expect(await giver.reply()).not.toStartWith("421 ");
  await door.greetAll(["198.51.100.2"]);
  expect(await giver.reply()).toStartWith("421 4.7.0 ");
});

test("no room is made for a newcomer who has too many sessions or connections already", async () => {
  await using door = await crowdedDoor(2, { max_connections_per_address: 1 });
  await door.greetAll(["198.51.100.1", "192.0.2.1"]);
  expect(await door.greet("192.0.2.1")).toStartWith("421 ");
  await door.expectOpen(["198.51.100.1", "192.0.2.1"]);
});
