import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "smol-toml";
import { builtBinary } from "./binary.ts";

/** Before any test has its time: the first who asks builds. */
const BINARY = await builtBinary();

export interface Said {
  code: number;
  out: string;
  err: string;
}

/** A folder with a configuration, and the program as people call it there. */
export interface CommandLine extends AsyncDisposable {
  /** The data folder. */
  dir: string;
  run(...words: string[]): Promise<Said>;
  /** As `run`, with `--json`; gives what was printed, read. */
  // oxlint-disable-next-line typescript/no-explicit-any
  json(...words: string[]): Promise<{ code: number; data: any; err: string }>;
}

export async function commandLine(settings: Record<string, object> = {}): Promise<CommandLine> {
  const base = await mkdtemp(join(tmpdir(), "mailwright-cli-"));
  const dir = join(base, "data");
  const config = join(base, "config.toml");
  await writeFile(config, stringify({ ...settings, data: { dir } }));
  const run = async (...words: string[]): Promise<Said> => {
    const child = Bun.spawn([BINARY, ...words, "--config", config], {
      cwd: base,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, out, err };
  };
  return {
    dir,
    run,
    async json(...words) {
      const { code, out, err } = await run(...words, "--json");
      if (out === "") throw new Error(err);
      return { code, data: JSON.parse(out), err };
    },
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
}
