import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { createLog } from "../../src/lib/log.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { serve } from "../../src/serve.ts";
import { layKeys } from "../support/keys.ts";
import { startClients } from "./load.ts";

const NAME = "www.mw.test";
const SWAPS = 30;
/** Enough for the clients to come back to what was left of the listener before. */
const BETWEEN_MS = 40;

/** A certificate that clients take for the root of itself. */
async function pair() {
  const { cert, private: key } = await generate([{ name: "commonName", value: NAME }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: NAME }] }],
  });
  return { cert, key };
}

test("thirty certificates one after the other cost no connection and no request, old ones or new ones", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-swap-"));
  await layKeys(dir);
  const pairs = [await pair(), await pair()];
  const [first] = pairs;
  const files = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem") };
  await writeFile(files.cert, first?.cert ?? "");
  await writeFile(files.key, first?.key ?? "");
  const config = defaultConfig({
    server: { tls: "files", listen: "127.0.0.1:0", ...files },
    smtp: { listen: "127.0.0.1:0", early_talker_ms: 0 },
    data: { dir },
  });
  const server = await serve(config, { log: createLog({ level: "warn", format: "text" }) });
  const portOf = (address: string | null): number => Number(/:(\d+)$/.exec(address ?? "")?.[1]);
  await using load = startClients({
    https_port: portOf(server.http),
    smtp_port: portOf(server.smtp),
    name: NAME,
    root: pairs.map(({ cert }) => cert).join("\n"),
  });
  await load.untilSeen(1);
  for (let swap = 1; swap <= SWAPS; swap += 1) {
    await server.app.certificates.swap(pairs[swap % 2] ?? { cert: "", key: "" });
    // The second swap after this one closes what has not sent anything yet, however slow its client is.
    await Promise.all([Bun.sleep(BETWEEN_MS), load.turn()]);
  }
  const report = await load.end();
  console.log(`${SWAPS} swaps: ${report.http.answered} requests, ${report.smtp.answered} STARTTLS sessions`);
  expect(report).toMatchObject({ failures: [], http: { certificates: 2 }, smtp: { certificates: 2 } });
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});
