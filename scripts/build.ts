/** Builds the one binary: `bun scripts/build.ts [--target linux-arm64] [--outfile FILE]`. */
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import { build as buildPages } from "vite";
import { version } from "../package.json";

const ROOT = join(import.meta.dir, "..");

/** What to build for, and the file of the SQLite driver that carries that platform's machine code. */
const TARGETS: Record<string, { compile: Bun.Build.CompileTarget; sqlite: string }> = {
  "linux-x64": { compile: "bun-linux-x64", sqlite: "linux-x64" },
  "linux-arm64": { compile: "bun-linux-arm64", sqlite: "linux-arm64" },
  "linux-x64-musl": { compile: "bun-linux-x64-musl", sqlite: "linuxmusl-x64" },
  "linux-arm64-musl": { compile: "bun-linux-arm64-musl", sqlite: "linuxmusl-arm64" },
  "darwin-x64": { compile: "bun-darwin-x64", sqlite: "darwin-x64" },
  "darwin-arm64": { compile: "bun-darwin-arm64", sqlite: "darwin-arm64" },
};

const DOWNLOAD_HINT =
  " For another platform than this one the Bun runtime of that platform is downloaded first, so check that the" +
  " network lets it through, or build on such a machine.";

try {
  console.log(`Built ${await build()} (Mailwright ${version}).`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

/** Returns the path of the binary. */
async function build(): Promise<string> {
  const { values } = parseArgs({ options: { target: { type: "string" }, outfile: { type: "string" } } });
  const here = await thisPlatform();
  const name = values.target ?? here;
  const target = TARGETS[name];
  if (!target) throw new Error(`"${name}" cannot be built; choose ${Object.keys(TARGETS).join(", ")}.`);
  const outfile = values.outfile ?? join(ROOT, "dist", `mailwright${values.target ? `-${name}` : ""}`);
  await mkdir(dirname(outfile), { recursive: true });
  await buildDashboard();
  await bundle(outfile, { ...target, foreign: name !== here }).catch((error: unknown) => {
    const why = error instanceof AggregateError ? error.errors.join("\n") : String(error);
    const hint = name === here ? "" : DOWNLOAD_HINT;
    throw new Error(`The build for ${name} failed.${hint}\n${why}`, { cause: error });
  });
  return outfile;
}

/** As for production, whoever builds: a run of the tests has another NODE_ENV, and would get a larger, slower twin. */
async function buildDashboard(): Promise<void> {
  const { NODE_ENV } = process.env;
  process.env["NODE_ENV"] = "production";
  await buildPages({ configFile: join(ROOT, "src/dashboard/vite.config.ts"), logLevel: "error" });
  if (NODE_ENV === undefined) delete process.env["NODE_ENV"];
  else process.env["NODE_ENV"] = NODE_ENV;
}

async function bundle(
  outfile: string,
  target: { compile: Bun.Build.CompileTarget; sqlite: string; foreign: boolean },
): Promise<void> {
  await Bun.build({
    // The first is where the program starts; worker threads are found in the binary by their path below `src`.
    entrypoints: [join(ROOT, "src/main.ts"), ...(await workers())],
    // What the threads' paths begin below; guessed from the list, it is not the same for every list.
    root: join(ROOT, "src"),
    target: "bun",
    format: "esm",
    // Starts in a fifth of the time. Not minified: the HTTP library reads the source of its handlers.
    bytecode: true,
    minify: false,
    // What is loaded at first use stays out of memory until then, and is there once for all threads.
    splitting: true,
    plugins: [sqliteOf(target.sqlite), dashboardInside()],
    compile: {
      outfile,
      ...(target.foreign ? { target: target.compile } : {}),
      // A `.env` or `bunfig.toml` in the folder it is started in is none of its business.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  });
}

async function workers(): Promise<string[]> {
  const found = await Array.fromAsync(new Bun.Glob("src/**/*-worker.ts").scan({ cwd: ROOT, absolute: true }));
  return found.sort();
}

/** The plain import looks for its machine code on disk, where a single binary has none. */
function sqliteOf(entry: string): BunPlugin {
  return {
    name: "sqlite-of-target",
    setup(build) {
      build.onResolve({ filter: /^better-sqlite3$/ }, () => ({
        path: Bun.resolveSync(`better-sqlite3/${entry}`, ROOT),
      }));
    },
  };
}

/** Where the sources look for the dashboard on the disk, the binary has its files inside. */
function dashboardInside(): BunPlugin {
  return {
    name: "dashboard-inside",
    setup(build) {
      build.onLoad({ filter: /\/src\/http\/dashboard-files\.ts$/ }, async () => {
        const cwd = join(ROOT, "dist/dashboard");
        const names = (await Array.fromAsync(new Bun.Glob("**/*").scan({ cwd, onlyFiles: true }))).sort();
        const imports = names.map(
          (name, index) =>
            `import file${index} from ${JSON.stringify(join(cwd, name))} with { type: "file" };`,
        );
        const entries = names.map((name, index) => `${JSON.stringify(name)}: file${index},`);
        return {
          loader: "js",
          contents: [...imports, "export const DASHBOARD_FILES = {", ...entries, "};"].join("\n"),
        };
      });
    },
  };
}

async function thisPlatform(): Promise<string> {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return base;
  const libraries = await readFile("/proc/self/maps", "latin1");
  return libraries.includes("/ld-musl-") ? `${base}-musl` : base;
}
