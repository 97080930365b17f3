import { describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { mtaStsRecord } from "../../src/resources/domains/own-mta-sts.ts";
import { createHttp } from "../../src/api.ts";
import { testApp } from "../support/app.ts";
import { createAuthority } from "../support/authority.ts";

const PATH = "/.well-known/mta-sts.txt";

async function policyAt(host: string, config: ConfigOverrides) {
  await using t = await testApp(config);
  // The server goes by the address of the request, which the listener makes of its Host.
  const response = await createHttp(t.app, { ready: async () => ({}) }).handle(
    // As it comes from a proxy that ends TLS.
    new Request(`http://${host}${PATH}`),
  );
  return { status: response.status, type: response.headers.get("content-type"), body: await response.text() };
}

describe("the MTA-STS policy", () => {
  test("is shown at the name of its own, to everybody", async () => {
    const { status, type, body } = await policyAt("mta-sts.mw.test", { smtp: { mta_sts: "testing" } });
    expect([status, type]).toEqual([200, "text/plain"]);
    expect(body).toBe("version: STSv1\r\nmode: testing\r\nmx: mx.mw.test\r\nmax_age: 86400\r\n");
  });

  test("is not there at other names, nor while it is switched off", async () => {
    expect((await policyAt("mw.test", { smtp: { mta_sts: "testing" } })).status).toBe(404);
    expect((await policyAt("mta-sts.other.test", { smtp: { mta_sts: "testing" } })).status).toBe(404);
    expect((await policyAt("mta-sts.mw.test", {})).status).toBe(404);
  });

  test("says testing for enforce while the certificate would turn all mail away, and enforce with a good one", async () => {
    const bad = await policyAt("mta-sts.mw.test", { smtp: { mta_sts: "enforce" } });
    expect(bad.body).toContain("mode: testing");
    const dir = await mkdtemp(join(tmpdir(), "mailwright-sts-"));
    try {
      const authority = await createAuthority();
      for (const [name, mode] of [
        ["mx.mw.test", "enforce"],
        ["other.mw.test", "testing"],
      ] as const) {
        const { cert, key } = await authority.issue(name);
        await writeFile(join(dir, "cert.pem"), cert);
        await writeFile(join(dir, "key.pem"), key);
        const server = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem") };
        const { body } = await policyAt("mta-sts.mw.test", { smtp: { mta_sts: "enforce" }, server });
        expect([name, body]).toEqual([name, expect.stringContaining(`mode: ${mode}\r\n`)]);
      }
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  test("has a record whose id changes with it, and with nothing else", () => {
    const id = (smtp: ConfigOverrides["smtp"], rest: ConfigOverrides = {}) =>
      mtaStsRecord(defaultConfig({ ...rest, smtp: { hostname: "mx.mw.test", mta_sts: "testing", ...smtp } }));
    expect(id({})).toMatch(/^v=STSv1; id=[a-z0-9]{1,32}$/);
    expect(id({})).toBe(id({}, { auth: { registration: "closed" } }));
    expect(id({ mta_sts: "enforce" })).not.toBe(id({}));
    expect(id({ hostname: "mx2.mw.test" })).not.toBe(id({}));
  });
});
