import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { migrations } from "../../migrations/index.ts";
import { builtBinary } from "../support/binary.ts";
import { commandLine } from "../support/command-line.ts";

const BINARY = await builtBinary();

test("migrate status is about the configuration that is named, and prints JSON when it is asked to", async () => {
  await using at = await commandLine();
  await at.run("user", "create", "ada@example.com");
  const elsewhere = await mkdtemp(join(tmpdir(), "mailwright-elsewhere-"));
  const config = join(dirname(at.dir), "config.toml");
  const child = Bun.spawn([BINARY, "migrate", "status", "--config", config, "--json"], {
    cwd: elsewhere,
    stdout: "pipe",
    stderr: "pipe",
  });
  const out = await new Response(child.stdout).text();
  expect([await child.exited, JSON.parse(out || "null")]).toEqual([
    0,
    Object.keys(migrations).map((name) => ({ name, executed: true })),
  ]);
  await rm(elsewhere, { recursive: true });
});

test("migrate makes nothing in a folder where no server is, and says so", async () => {
  await using at = await commandLine();
  for (const words of [["migrate"], ["migrate", "status"]])
    expect(await at.run(...words)).toMatchObject({
      code: 1,
      err: `There is no Mailwright in the data folder ${at.dir}. Go to the folder of your config.toml, name that file with --config, or begin with \`mailwright serve\` or \`mailwright user create\`.\n`,
    });
  expect(await readdir(dirname(at.dir))).toEqual(["config.toml"]);
});
