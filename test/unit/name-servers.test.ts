import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { getServers } from "node:dns";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createResolver } from "../../src/net/dns.ts";
import { createNameServers, nameServerNames } from "../../src/net/name-servers.ts";
import { startDnsServer } from "../support/dns-server.ts";

/** Nothing listens there. */
const GONE = "127.0.0.1:9";

async function systemFile(text?: string) {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-names-"));
  const path = join(dir, "resolv.conf");
  if (text !== undefined) await writeFile(path, text);
  return { path, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

test("a name server that the system names later is asked without a restart", async () => {
  await using dns = await startDnsServer({ "a.test": { TXT: ["found"] } });
  await using file = await systemFile(`nameserver ${GONE}\n`);
  const resolve = createResolver({ servers: [], system_file: file.path, timeout_ms: 100 });
  await expect(resolve("a.test", "TXT")).rejects.toMatchObject({ rrtype: "TXT" });
  await writeFile(file.path, `# by the lease\nsearch lan\nnameserver ${dns.address}\n`);
  expect(await resolve("a.test", "TXT")).toEqual([["found"]]);
});

test("a name server is asked without a restart whose file takes the place of another, or appears, or could not be read", async () => {
  await using dns = await startDnsServer({ "a.test": { TXT: ["found"] }, "b.test": { TXT: ["found"] } });
  await using file = await systemFile();
  await using folder = await systemFile();
  const resolve = createResolver({ servers: [], system_file: file.path, timeout_ms: 2_000 });
  const draft = `${file.path}.new`;
  await writeFile(draft, `nameserver ${dns.address}\n`);
  await rename(draft, file.path);
  expect(await resolve("a.test", "TXT")).toEqual([["found"]]);
  const unread = createResolver({ servers: [], system_file: join(folder.path, ".."), timeout_ms: 2_000 });
  await expect(unread("b.test", "TXT")).rejects.toMatchObject({ code: "ESERVFAIL" });
});

test.each([
  ["nameserver 192.0.2.1\nnameserver\t2001:db8::1 \n", "192.0.2.1, 2001:db8::1"],
  ["nameserver 192.0.2.1\r\noptions edns0", "192.0.2.1"],
  [" nameserver 192.0.2.1 # ours\n#nameserver 192.0.2.2\n;nameserver 192.0.2.3", "192.0.2.1"],
  ["nameserver one.example\nnameserver\nnameserver 192.0.2.1", "192.0.2.1"],
  [[1, 2, 3, 4].map((host) => `nameserver 192.0.2.${host}`).join("\n"), "192.0.2.1, 192.0.2.2, 192.0.2.3"],
  ["", "127.0.0.1"],
])("of %j these are asked: %s", async (text, expected) => {
  await using file = await systemFile(text);
  expect(nameServerNames(createNameServers([], file.path)())).toBe(expected);
});

test("without such a file those are asked that the runtime knows of", async () => {
  await using file = await systemFile();
  expect(nameServerNames(createNameServers([], file.path)())).toContain(getServers()[0] ?? "127.0.0.1");
});

test("those given are asked whatever the system names", async () => {
  await using file = await systemFile("nameserver 192.0.2.1");
  const given = ["1.1.1.1", "127.0.0.1:5353", "[::1]:53", "[::1]:5353"];
  expect(nameServerNames(createNameServers(given, file.path)())).toBe(
    "1.1.1.1, 127.0.0.1:5353, ::1, [::1]:5353",
  );
});
