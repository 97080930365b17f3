import { expect, test } from "bun:test";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtBinary } from "../support/binary.ts";
import { until } from "../support/until.ts";

const BINARY = await builtBinary();
const CONFIG = `
[server]
listen = "127.0.0.1:0"
[smtp]
listen = "127.0.0.1:0"
[log]
format = "json"
`;

interface Line {
  level: number;
  msg: string;
  data?: string;
}

/** A folder with a configuration that names no place for the data, and a folder beside it. */
async function place() {
  const path = await realpath(await mkdtemp(join(tmpdir(), "mailwright-place-")));
  const [home, elsewhere] = [join(path, "home"), join(path, "elsewhere")];
  for (const folder of [home, elsewhere]) await mkdir(folder);
  const file = join(home, "config.toml");
  await writeFile(file, CONFIG);
  return { home, elsewhere, file, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

/** What a server says from its start until it has ended by SIGTERM. */
async function said(cwd: string, words: string[], env: Record<string, string> = {}): Promise<Line[]> {
  const child = Bun.spawn([BINARY, "serve", ...words], {
    cwd,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  let text = "";
  const read = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) text += decoder.decode(chunk, { stream: true });
  })();
  await until(() => text.includes('"msg":"ready"'));
  // What is said right behind it has been said by then.
  child.kill("SIGTERM");
  await child.exited;
  await read;
  return text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));
}

const ready = (lines: Line[]) => lines.find(({ msg }) => msg === "ready")?.data;
const begun = (lines: Line[]) => lines.filter(({ msg }) => msg.startsWith("a new server begins in"));
const warned = (lines: Line[]) => lines.filter(({ msg, level }) => level === 40 && msg.includes("data.dir"));

test("the log names the data folder, and says that a new server begins there", async () => {
  await using at = await place();
  const first = await said(at.home, []);
  expect(ready(first)).toBe(join(at.home, "data"));
  expect(begun(first)).toMatchObject([{ level: 30, msg: `a new server begins in ${join(at.home, "data")}` }]);
  expect(warned(first)).toEqual([]);
  const second = await said(at.home, ["--config", at.file]);
  expect([ready(second), begun(second)]).toEqual([join(at.home, "data"), []]);
});

test.each(["--config", "MAILWRIGHT_CONFIG"])(
  "a new server that begins in another folder than that of its %s is warned of",
  async (by) => {
    await using at = await place();
    const start = (cwd: string) =>
      by === "--config" ? said(cwd, ["--config", at.file]) : said(cwd, [], { MAILWRIGHT_CONFIG: at.file });
    const first = await start(at.elsewhere);
    expect(begun(first)).toHaveLength(1);
    const [{ msg } = { msg: "" }, ...more] = warned(first);
    expect(more).toEqual([]);
    expect(msg).toContain(`a new server began in ${join(at.elsewhere, "data")}.`);
    expect(msg).toContain(`If it was to be that in ${join(at.home, "data")}`);
    // Whoever goes on with it has meant it.
    expect(warned(await start(at.elsewhere))).toEqual([]);
    await writeFile(at.file, `${CONFIG}[data]\ndir = "${at.home}/other"\n`);
    expect(warned(await start(at.elsewhere))).toEqual([]);
  },
);

const COMMANDS = [
  ["queue", "list"],
  ["migrate", "status"],
  ["backup", "x.zip"],
].map((words) => ({ words }));

test.each(COMMANDS)(
  "$words says why a configuration named from another folder finds no server",
  async ({ words }) => {
    await using at = await place();
    const main = join(import.meta.dir, "../../src/main.ts");
    const run = (file: string) =>
      Bun.spawnSync([process.execPath, main, ...words, "--config", file], { cwd: at.elsewhere });
    const data = join(at.elsewhere, "data");
    const { exitCode, stderr } = run("../home/config.toml");
    expect([exitCode, stderr.toString()]).toEqual([
      1,
      `There is no Mailwright in the data folder ${data}: data.dir "./data" is taken from the folder in which you are, and not from that of ../home/config.toml. ` +
        `Run this in the folder in which the server is started, such as ${at.home}, or set data.dir to the whole path, such as ${at.home}/data.\n`,
    ]);
    await writeFile(at.file, `${CONFIG}[data]\ndir = "${at.home}/other"\n`);
    expect(run(at.file).stderr.toString()).toStartWith(
      `There is no Mailwright in the data folder ${at.home}/other. Go to`,
    );
  },
);
