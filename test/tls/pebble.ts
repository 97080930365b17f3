import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

const PEBBLE = Bun.which("pebble");
const START_MS = 10_000;

export const hasPebble = PEBBLE !== null;
if (!hasPebble) console.log("ACME is not tried: apt-get install pebble");

/** An ACME authority of its own on loopback, which looks at challenges for real. */
export interface Pebble extends AsyncDisposable {
  /** For `acme.directory`. */
  directory: string;
  /** For `acme.ca_file`. */
  ca_file: string;
  /** Where it looks for HTTP challenges, for `acme.listen`. */
  door: string;
  /** The certificate that its certificates go back to; another one after each start. */
  root(): Promise<string>;
  /** How many orders it has taken in this life. It refuses one request in twenty, which is then made again. */
  orders(): Promise<number>;
  stop(): Promise<void>;
  /** After `stop`: at the same address, and with nothing remembered. */
  start(): Promise<void>;
}

export async function startPebble(dns: { address: string }): Promise<Pebble> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-pebble-"));
  const [port, manage, http, tls] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const ca_file = join(dir, "server.pem");
  await writeServerCertificate(dir, ca_file);
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${manage}`,
    certificate: ca_file,
    privateKey: join(dir, "server.key"),
    httpPort: http,
    tlsPort: tls,
  };
  await writeFile(join(dir, "config.json"), JSON.stringify({ pebble }));
  const log = join(dir, "log");
  const directory = `https://localhost:${port}/dir`;
  const trusted = { tls: { ca: await readFile(ca_file, "utf8") } };
  let child: Bun.Subprocess | undefined;
  const stop = async (): Promise<void> => {
    child?.kill();
    await child?.exited;
  };
  const start = async (): Promise<void> => {
    // One descriptor for both: two would write over one another's lines.
    const out = openSync(log, "w");
    child = Bun.spawn(
      [String(PEBBLE), "-config", join(dir, "config.json"), "-dnsserver", dns.address, "-strict"],
      {
        env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_VA_ALWAYS_VALID: "0", PEBBLE_AUTHZREUSE: "0" },
        stdout: out,
        stderr: out,
      },
    );
    closeSync(out);
    const answers = () =>
      fetch(directory, trusted).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(answers, START_MS, () => readFile(log, "utf8"));
  };
  await start();
  return {
    directory,
    ca_file,
    door: `127.0.0.1:${http}`,
    root: async () => (await fetch(`https://localhost:${manage}/roots/0`, trusted)).text(),
    orders: async () => (await readFile(log, "utf8")).split("Added order ").length - 1,
    start,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function writeServerCertificate(dir: string, path: string): Promise<void> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  await writeFile(path, cert);
  await writeFile(join(dir, "server.key"), key);
}
