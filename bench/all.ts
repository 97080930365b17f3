import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { FIGURES, keeps } from "./figures.ts";
import { RESULTS_VARIABLE, type Result, ROUNDS_VARIABLE, short } from "./support.ts";

/**
 * Runs every bench once, with fewer rounds, and prints one table: each figure with its goal, its floor, what was recorded
 * last, and what it is now, marked where it is below its floor. `bun bench/all.ts [--record] [NAME…]`: with `--record` what
 * is measured takes the place of what was recorded. It ends with 1 where a floor is undercut.
 */
const BENCHES =
  "start smtp smtp-latency route mail webhooks list search extract first-load hostile direct".split(" ");
const ROUNDS = "3";
const RECORDED = join(import.meta.dir, "recorded.json");

interface Recorded {
  commit: string;
  machine: string;
  figures: Record<string, number>;
}

const words = process.argv.slice(2);
const named = words.filter((word) => !word.startsWith("--"));
const recorded: Recorded = existsSync(RECORDED)
  ? (JSON.parse(readFileSync(RECORDED, "utf8")) as Recorded)
  : { commit: "none", machine: "none", figures: {} };
const results: Result[] = [];
for (const name of named.length > 0 ? named : BENCHES) results.push(...(await resultsOf(name)));
printTable(results);
if (words.includes("--record")) await record(results);
process.exitCode = results.some(isBelow) ? 1 : 0;

async function resultsOf(name: string): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), "mailwright-bench-"));
  const file = join(dir, "results.json");
  console.log(`\n== ${name}`);
  try {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, `${name}.ts`)], {
      env: { ...process.env, [ROUNDS_VARIABLE]: ROUNDS, [RESULTS_VARIABLE]: file },
      stdout: "inherit",
      stderr: "inherit",
    });
    if ((await child.exited) !== 0) console.log(`${name} ended with ${child.exitCode}`);
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Result[]) : [];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function printTable(all: Result[]): void {
  const row = (...cells: string[]) =>
    console.log(
      cells
        .map((cell, index) => cell.padEnd(index === 0 ? 52 : 10))
        .join(" ")
        .trimEnd(),
    );
  console.log(`\nRecorded: ${recorded.commit}, ${recorded.machine}. Now: ${commit()}, ${machine()}.\n`);
  row("", "goal", "floor", "recorded", "now");
  for (const result of all) {
    const { goal = "", floor = "" } = FIGURES[result.name] ?? {};
    const before = recorded.figures[result.name];
    const mark = isBelow(result) ? "BELOW ITS FLOOR" : "";
    row(result.name, goal, floor, before === undefined ? "" : short(before), short(result.median), mark);
  }
}

function isBelow({ name, median }: Result): boolean {
  const floor = FIGURES[name]?.floor ?? "";
  return floor !== "" && !keeps(median, floor);
}

async function record(all: Result[]): Promise<void> {
  const figures = Object.fromEntries(all.map(({ name, median }) => [name, Number(median.toPrecision(3))]));
  const next: Recorded = {
    commit: commit(),
    machine: machine(),
    figures: { ...recorded.figures, ...figures },
  };
  await Bun.write(RECORDED, `${JSON.stringify(next, null, 2)}\n`);
}

function commit(): string {
  const { stdout } = Bun.spawnSync(["git", "-C", import.meta.dir, "rev-parse", "--short", "HEAD"]);
  return stdout.toString().trim();
}

function machine(): string {
  return `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`;
}
