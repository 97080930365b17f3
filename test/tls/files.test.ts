import { describe, expect, spyOn, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { defaultConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { serve } from "../../src/serve.ts";
import { house, type ServerProcess } from "../faults/house.ts";
import { layKeys } from "../support/keys.ts";
import { shownByHttps, shownBySmtp } from "./doors.ts";
import { DAY_MS } from "../../src/lib/durations.ts";
import { until } from "../support/until.ts";

const NAME = "mx.mw.test";

interface Pair {
  cert: string;
  key: string;
}

async function pair(days = 90): Promise<Pair> {
  const { cert, private: key } = await generate([{ name: "commonName", value: NAME }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notAfterDate: new Date(Date.now() + days * DAY_MS),
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: NAME }] }],
  });
  return { cert, key };
}

/** Certificate files, as another program keeps them. */
async function files(first: Pair) {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-files-"));
  const put = async (name: string, text: string): Promise<void> => {
    await writeFile(join(dir, `${name}.new`), text);
    await rename(join(dir, `${name}.new`), join(dir, name));
  };
  const replace = async ({ cert, key }: Pair): Promise<void> => {
    await put("cert.pem", cert);
    await put("key.pem", key);
  };
  await replace(first);
  return {
    put,
    replace,
    settings: { cert: join(dir, "cert.pem"), key: join(dir, "key.pem"), listen: "127.0.0.1:0" },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Whether each door shows the certificate of a pair. */
async function shows(server: ServerProcess, { cert }: Pair) {
  const port = Number(new URL(server.http).port);
  const https = server.http.startsWith("https:")
    ? [await shownByHttps({ port, name: NAME, root: cert })]
    : [];
  const smtp = await shownBySmtp({ port: server.smtp.port, name: NAME, root: cert });
  return [...https, smtp].map(({ valid }) => valid);
}

async function reload(server: ServerProcess, words: string): Promise<string> {
  const before = server.log().length;
  server.kill("SIGHUP");
  await until(async () => server.log().slice(before).includes(words));
  return server.log().slice(before);
}

describe("certificate files", () => {
  test("for another name than that of base_url are said so at the start", async () => {
    await using at = await files(await pair());
    const base_url = "https://mail.mw.test";
    await using home = await house({ server: { ...at.settings, tls: "files", base_url } });
    await using server = await home.start();
    const words = `The certificate in server.cert is for ${NAME}, and not for mail.mw.test, the host of server.base_url: browsers refuse it there. Put one for that name in its place, or mend server.base_url.`;
    await until(async () => server.log().includes(words));
  });

  test("that were replaced are shown at both doors after SIGHUP, and a pair that does not fit never", async () => {
    const [first, second, third] = [await pair(), await pair(), await pair()];
    await using at = await files(first);
    await using home = await house({ server: { ...at.settings, tls: "files" } });
    await using server = await home.start();
    expect(await shows(server, first)).toEqual([true, true]);

    await at.replace(second);
    await reload(server, "the certificate was replaced");
    expect(await shows(server, second)).toEqual([true, true]);

    await at.put("cert.pem", third.cert);
    const said = await reload(server, "the certificate stays the old one");
    expect(said).toContain("The private key does not belong to the certificate.");
    await at.put("cert.pem", "no certificate");
    expect(await reload(server, "the certificate stays the old one")).toContain("holds no PEM block");
    await at.put("cert.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    expect(await reload(server, "the certificate stays the old one")).toContain("It cannot be read");
    expect(await shows(server, second)).toEqual([true, true]);
    expect(server.log()).not.toContain("PRIVATE KEY");

    await at.replace(third);
    await reload(server, "the certificate was replaced");
    expect(await shows(server, third)).toEqual([true, true]);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  });

  test("are looked at every minute without any signal", async () => {
    const [first, second] = [await pair(), await pair()];
    await using at = await files(first);
    const dir = await mkdtemp(join(tmpdir(), "mailwright-minute-"));
    await layKeys(dir);
    const config = defaultConfig({
      server: { ...at.settings, tls: "files" },
      smtp: { listen: "" },
      data: { dir },
    });
    const timers = spyOn(globalThis, "setInterval");
    const server = await serve(config, { log: createLog({ level: "silent", format: "text" }) });
    const minutely = timers.mock.calls.filter(([, ms]) => ms === 60_000);
    timers.mockRestore();
    await at.replace(second);
    for (const [look] of minutely) (look as () => void)();
    const port = Number(new URL(server.http).port);
    await until(async () => (await shownByHttps({ port, name: NAME, root: second.cert })).valid);
    await server[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  });

  test("serve STARTTLS behind a proxy as well, and are reloaded there", async () => {
    const [first, second] = [await pair(), await pair()];
    await using at = await files(first);
    await using home = await house({ server: { ...at.settings, tls: "off" } });
    await using server = await home.start();
    expect(await shows(server, first)).toEqual([true]);
    await at.replace(second);
    await reload(server, "the certificate was replaced");
    expect(await shows(server, second)).toEqual([true]);
  });

  test("that do not fit each other at the start are refused with a sentence", async () => {
    const [first, second] = [await pair(), await pair()];
    await using at = await files({ cert: first.cert, key: second.key });
    await using home = await house({ server: { ...at.settings, tls: "files" } });
    const { code, err } = await home.cli("serve");
    expect(code).toBe(1);
    expect(err).toContain("The private key does not belong to the certificate.");
    expect(err).toContain("Set server.cert to the chain and server.key to the private key it was made for.");
  });

  test("near their end are warned about in the log, by readyz and by healthcheck", async () => {
    await using at = await files(await pair(10));
    await using home = await house({ server: { ...at.settings, tls: "files" } });
    await using server = await home.start();
    const words =
      /The certificate for mx\.mw\.test ends on \d{4}-\d\d-\d\d\. Put new files in place of the old ones\./;
    await until(async () => words.test(server.log()));
    const answer = await fetch(`${server.http}/readyz`, { tls: { rejectUnauthorized: false } });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ warnings: { certificate: expect.stringMatching(words) } });
    const { out, code } = await home.cli("healthcheck", "--url", server.http);
    expect([code, out]).toEqual([0, expect.stringMatching(words)]);
  });

  test("do not let a second server share the port without a word", async () => {
    await using at = await files(await pair());
    await using first = await house({ server: { ...at.settings, tls: "files" } });
    await using server = await first.start();
    const listen = new URL(server.http).host;
    await using second = await house({ server: { ...at.settings, tls: "files", listen } });
    const { code, err } = await second.cli("serve");
    expect([code, err]).toEqual([1, expect.stringContaining(`${listen} is in use by another program.`)]);
  });
});

test("what a killed process has begun to write of a key is gone after the next start", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-drafts-"));
  await layKeys(dir);
  await mkdir(join(dir, "tls"), { recursive: true });
  await writeFile(join(dir, "tls", `account-key.pem.${crypto.randomUUID()}.tmp`), "half a key");
  await writeFile(join(dir, "tls", "account-key.pem"), "a key");
  const config = defaultConfig({
    server: { listen: "127.0.0.1:0" },
    smtp: { listen: "" },
    data: { dir },
  });
  const server = await serve(config, { log: createLog({ level: "silent", format: "text" }) });
  await server[Symbol.asyncDispose]();
  expect(await readdir(join(dir, "tls"))).toEqual(["account-key.pem"]);
  await rm(dir, { recursive: true, force: true });
});
