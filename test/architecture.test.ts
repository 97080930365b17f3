import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Rows of the house: a file imports from its own row or a lower one. The first pattern that fits a path decides. */
const ROWS: [RegExp, number][] = [
  [/^(migrations\/|package\.json$|config\.example\.toml$)/, 0],
  [/\/([a-z-]+-)?(routes|shapes)\.ts$/, 7],
  [/^src\/(errors|metrics|reasons)\.ts$|^src\/(lib|net|config)\//, 0],
  [/^src\/db\//, 1],
  [/^src\/app\.ts$|^src\/(jobs|mail|trust|ai|files|tls|backup)\//, 2],
  [/^src\/resources\/(accounts|billing|connections|contacts|contexts|domains|integrations|webhooks)\//, 3],
  [/^src\/resources\/inboxes\//, 4],
  [/^src\/(resources\/(messages|conversations|recipes|replays|test-runs|schedules|approvals)|inbound)\//, 5],
  [/^src\/(pipeline|operation\/(retention|export))\//, 6],
  [/^src\/(http|smtp|dashboard|operation\/(doctor|admin))\/|^src\/operation\/[a-z]+\.ts$/, 7],
  [/^src\/(api|serve|main)\.ts$|^src\/cli\//, 8],
];

/** Each outside library has doors, named here, so that it can be watched, and replaced. */
const DOORS: [RegExp, RegExp][] = [
  [/^elysia/, /^src\/(api\.ts$|http\/)|\/([a-z-]+-)?(routes|shapes)\.ts$/],
  [/^(better-sqlite3|kysely)/, /^src\/db\/|^migrations\//],
  [/^openai/, /^src\/ai\//],
  [/^@modelcontextprotocol\/client/, /^src\/(ai\/mcp|resources\/integrations\/mcp-oauth)[a-z-]*\.ts$/],
  [
    /^nodemailer/,
    /^src\/mail\/(writing\/compose|sending\/(connections|(matched|patient)-smtp|send-relay|try-senders))\.ts$/,
  ],
  [/^mx-connect/, /^src\/mail\/sending\/dane\.ts$/],
  [/^mailparser/, /^src\/mail\/reading\/parse[a-z-]*\.ts$/],
  [/^mailauth/, /^src\/mail\//],
  [/^sanitize-html/, /^src\/mail\/writing\//],
  [/^tldts/, /^src\/(net\/(domain-owner|public-providers)|trust\/shown\/find-link)\.ts$/],
  [/^entities/, /^src\/trust\/guard\/as-read\.ts$/],
  [/^htmlparser2/, /^src\/(trust\/own-words\/html-text|files\/(open-document|word-xml))\.ts$/],
  [
    /^markdown-it/,
    /^src\/(mail\/writing\/markdown[a-z-]*|resources\/integrations\/notes-blocks|dashboard\/ui\/markdown)\.tsx?$/,
  ],
  [/^(react|@tanstack|lucide-react|uplot|uqr|@?tailwindcss|vite|@vitejs)/, /^src\/dashboard\/|^scripts\//],
  [/^diff$/, /^src\/dashboard\/pages\/activity\/differences\.tsx$/],
  [/^smtp-server/, /^src\/smtp\//],
  [/^selfsigned/, /^src\/tls\/self-signed-worker\.ts$/],
  [/^acme-client/, /^src\/tls\/authority\.ts$/],
  [/^prom-client/, /^src\/metrics\.ts$/],
  [/^pino/, /^src\/lib\/log\.ts$/],
  [/^smol-toml/, /^src\/(config\/file|cli\/config)\.ts$/],
  [/^unpdf/, /^src\/files\/pdf\.ts$/],
  [/^mammoth/, /^src\/files\/docx\.ts$/],
  [/^read-excel-file/, /^src\/files\/xlsx\.ts$/],
  [/^libheif-js/, /^src\/files\/heic\.ts$/],
  [/^ical\.js/, /^src\/files\/calendar\.ts$/],
  [/^file-type/, /^src\/files\/kind\.ts$/],
  [/^minisearch/, /^src\/resources\/contexts\/match\.ts$/],
  [/^dns-packet/, /^src\/net\/dns[a-z-]*\.ts$/],
  [/^oauth4webapi/, /^src\/resources\/integrations\/oauth-client\.ts$/],
  [/^stripe/, /^src\/resources\/billing\/stripe\.ts$/],
  [/^croner/, /^src\/lib\/cron\.ts$/],
  [/^yauzl/, /^src\/backup\/read-archive\.ts$/],
  [/^(iconv-lite|encoding-japanese)/, /^src\/mail\/reading\/charsets\.ts$/],
  [
    /^ipaddr\.js/,
    /^src\/(net\/|(config\/forms|smtp\/proxy-header|inbound\/block-list|resources\/domains\/service-records)\.ts$)/,
  ],
  [/^ajv/, /^src\/lib\/json-schema\.ts$/],
  [/^@sinclair\/typebox/, /^src\/(http\/|resources\/contexts\/versions\.ts$)|(shapes|routes)\.ts$/],
  [/^swagger-ui-dist/, /^src\/http\/docs[a-z-]*\.ts$/],
  [/^commander/, /^src\/(main\.ts$|cli\/)/],
];

/** What needs no door: our own files, and what the runtime brings. */
const OWN = /^(src|migrations)\/|^(package\.json|config\.example\.toml)$|^(node|bun)(:|$)|^_http_common$/;

type Sources = Record<string, string>;

test("every file imports only from its own row or a lower one, through the doors, and never in a circle", async () => {
  expect(faultsOf(await readSources())).toEqual([]);
});

/** The rooms of the house, from the top floor down: what stands at the root of `src`. */
const ROOMS =
  "main.ts cli serve.ts api.ts dashboard operation pipeline smtp inbound resources http files mail ai trust backup tls jobs app.ts db config metrics.ts net lib errors.ts reasons.ts".split(
    " ",
  );
/** Imports from one room to another above it, those of types included, each pair of rooms once. */
const MAX_UPWARD = 14;

test("the root of the sources has few rooms, and hardly anything in one needs what stands above it", async () => {
  const sources = await readSources();
  const roomOf = (path: string) => /^src\/([^/]+)/.exec(path)?.[1] ?? "";
  const rooms = new Set(
    Object.keys(sources)
      .filter((path) => path.startsWith("src/"))
      .map(roomOf),
  );
  expect([...rooms].toSorted()).toEqual(ROOMS.toSorted());
  expect(ROOMS.length).toBeLessThanOrEqual(26);
  const upward = new Set<string>();
  for (const [path, code] of Object.entries(sources))
    for (const [, name = ""] of code.matchAll(/\bfrom "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/g)) {
      const [here, there] = [roomOf(path), roomOf(normalize(join(path, "..", name)))];
      if (ROOMS.includes(there) && ROOMS.indexOf(there) < ROOMS.indexOf(here))
        upward.add(`${here} > ${there}`);
    }
  expect(upward.size).toBeLessThanOrEqual(MAX_UPWARD);
});

test("a folder of many files begins with a short README, and every file that it names is there", async () => {
  const root = join(import.meta.dir, "..");
  const folders = Map.groupBy(new Bun.Glob("src/**/*.*").scanSync({ cwd: root }), (path) => dirname(path));
  const faults: string[] = [];
  for (const [folder, files] of folders) {
    const path = join(folder, "README.md");
    if (!files.includes(path)) {
      if (files.length > 8 && !folder.startsWith("src/dashboard/public")) faults.push(`${path} is missing`);
      continue;
    }
    const text = await Bun.file(join(root, path)).text();
    if (text.trimEnd().split("\n").length > 12) faults.push(`${path} is longer than 12 lines`);
    for (const [, name = ""] of text.matchAll(/`([\w./-]+\.tsx?|[\w.-]+(?:\/[\w.-]+)*\/)`/g))
      if (![folder, "src"].some((at) => existsSync(join(root, at, name))))
        faults.push(`${path} names ${name}, which is not there`);
  }
  expect(faults).toEqual([]);
});

/** Openings that keep their reader waiting for the subject. */
const LATE_SUBJECT =
  /^[ \t]*(?:\/\*\*|\/\/|\*) (?:Of [a-z]|Gives (?:the|what|how|its|their) (?!.*\bback\b)).*/gm;

/** The same, as a sentence of the OpenAPI document. */
const LATE_SENTENCE = /"Of [a-z][^"]*"/g;

test("a comment begins with its subject, and so does a sentence of the OpenAPI document", async () => {
  const root = join(import.meta.dir, "..");
  const faults: string[] = [];
  for (const path of new Bun.Glob("{src,test,bench,scripts,migrations}/**/*.{ts,tsx}").scanSync({
    cwd: root,
  })) {
    const text = await Bun.file(join(root, path)).text();
    for (const [line] of text.matchAll(LATE_SUBJECT)) faults.push(`${path}: ${line.trim()}`);
    if (/(?:shapes|routes)\.ts$/.test(path))
      for (const [words] of text.matchAll(LATE_SENTENCE)) faults.push(`${path}: ${words}`);
  }
  expect(faults).toEqual([]);
});

test("what is needed once or every other month is out of reach of the server's own thread, which would keep it in memory", async () => {
  const sources = await readSources();
  const reached = new Set(["src/main.ts"]);
  for (const path of reached) for (const name of importsOf(path, sources[path] ?? "")) reached.add(name);
  expect(["elysia", "mailauth", "src/tls/order-thread.ts"].filter((name) => !reached.has(name))).toEqual([]);
  expect(["acme-client", "selfsigned"].filter((name) => reached.has(name))).toEqual([]);
});

test("a start loads no library that only some mails, runs or accounts need", async () => {
  const sources = await readSources();
  // Each command is loaded where it is run.
  const loaded = new Set(["src/cli/program.ts", "src/cli/serve.ts"]);
  for (const path of loaded) for (const name of loadedBy(path, sources[path] ?? "")) loaded.add(name);
  expect(["elysia", "src/mail/reading/charsets.ts"].filter((name) => !loaded.has(name))).toEqual([]);
  const of_mails = ["mailparser", "mailauth", "encoding-japanese", "iconv-lite", "htmlparser2", "ical.js"];
  const of_answers = ["markdown-it", "sanitize-html", "nodemailer/lib/mail-composer"];
  const of_accounts = ["minisearch", "openai", "@modelcontextprotocol/client", "stripe", "oauth4webapi"];
  const later = [...of_mails, ...of_answers, ...of_accounts, "prom-client", "yauzl"];
  expect(later.filter((name) => loaded.has(name))).toEqual([]);
});

test("a library is loaded by imports or by calls of require, as its two builds would be two libraries", async () => {
  const of_server = Object.entries(await readSources()).filter(
    ([path]) => !path.startsWith("src/dashboard/"),
  );
  const all = of_server.flatMap(([path, code]) => scanned(path, code));
  const packages = (required: boolean) => {
    const names = all.filter(({ kind }) => (kind === "require-call") === required).map(({ name }) => name);
    return new Set(names.filter((name) => !name.startsWith("src/")).map(packageOf));
  };
  expect(packages(true).size).toBeGreaterThan(0);
  expect([...packages(true).intersection(packages(false))]).toEqual([]);
});

test("whatever works on texts of accounts or strangers on threads gives everybody their turn", async () => {
  const sources = await readSources();
  const users = (name: string) =>
    Object.keys(sources).filter((path) => importsOf(path, sources[path] ?? "").includes(name));
  // Who takes threads past the turns: what counts an account's storage, for which nothing waits.
  expect(users("src/lib/worker-pool.ts").toSorted()).toEqual([
    "src/db/account-storage.ts",
    "src/lib/fair-pool.ts",
  ]);
});

describe("the check itself", () => {
  const faults: [string, Sources, string][] = [
    [
      "a file that imports from a higher row",
      { "src/db/a.ts": `import { x } from "../app.ts";`, "src/app.ts": "export const x = 1;" },
      "src/db/a.ts imports src/app.ts, which is in a higher row",
    ],
    [
      "a dynamic import from a higher row",
      { "src/lib/a.ts": `await import("../db/b.ts");`, "src/db/b.ts": "" },
      "src/lib/a.ts imports src/db/b.ts, which is in a higher row",
    ],
    [
      "a slice that imports an HTTP file",
      {
        "src/resources/billing/a.ts": `export { x } from "./routes.ts";`,
        "src/resources/billing/routes.ts": "",
      },
      "src/resources/billing/a.ts imports src/resources/billing/routes.ts, which is in a higher row",
    ],
    [
      "a circle",
      {
        "src/ai/a.ts": `import "./b.ts";`,
        "src/ai/b.ts": `import "./c.ts";`,
        "src/ai/c.ts": `import "./a.ts";`,
      },
      "src/ai/a.ts > src/ai/b.ts > src/ai/c.ts > src/ai/a.ts is a circle",
    ],
    [
      "a library used beside its door",
      { "src/resources/inboxes/a.ts": `import { sql } from "kysely"; sql();` },
      "src/resources/inboxes/a.ts imports kysely beside its door",
    ],
    [
      "a library without a door",
      { "src/mail/a.ts": `import { x } from "left-pad"; x();` },
      "src/mail/a.ts imports left-pad, which has no door",
    ],
    [
      "an environment variable read outside of the configuration",
      { "src/mail/a.ts": `export const home = process.env["HOME"];` },
      "src/mail/a.ts reads the environment",
    ],
    [
      "a database that is opened with what SQLite does by itself",
      { "src/db/a.ts": `export const a = new Sqlite("x.db", { readonly: true });` },
      "src/db/a.ts opens a database beside openSqlite",
    ],
    ...["synchronous = OFF", "synchronous=NORMAL", "Synchronous(1)"].map(
      (words): [string, Sources, string] => [
        words,
        { "src/db/a.ts": `sqlite.pragma("${words}");` },
        "src/db/a.ts asks for commits that are not synced",
      ],
    ),
    [
      "a job that is changed beside the queue",
      { "src/cli/a.ts": `await tx.deleteFrom("jobs").execute();` },
      "src/cli/a.ts writes jobs beside src/jobs",
    ],
    ["a file that is in no row", { "src/utils/a.ts": "" }, "src/utils/a.ts is in no row"],
  ];
  test.each(faults)("finds %s", (_name, sources, fault) => {
    expect(faultsOf(sources)).toEqual([fault]);
  });

  test("lets types through, and imports of its own row or a lower one", () => {
    const sources = {
      "src/lib/a.ts": `import type { Db } from "../db/b.ts"; import { type Db as D } from "../db/b.ts";`,
      "src/db/b.ts": `import { x } from "../lib/a.ts"; import "./c.ts"; import { sql } from "kysely"; sql(x);`,
      "src/db/c.ts": "",
      "src/resources/billing/routes.ts": `import { Elysia } from "elysia"; import "../http/auth.ts"; new Elysia();`,
      "src/http/auth.ts": "",
    };
    expect(faultsOf(sources)).toEqual([]);
  });
});

function faultsOf(sources: Sources): string[] {
  const imports = new Map(Object.entries(sources).map(([path, code]) => [path, importsOf(path, code)]));
  return [
    ...[...imports].flatMap(([path, names]) => names.flatMap((name) => importFault(path, name))),
    ...Object.entries(sources).flatMap(([path, code]) => fileFaults(path, code)),
    ...circles(imports),
  ];
}

/** Files as paths from the root of the project, libraries by their names; types are gone. */
function importsOf(path: string, code: string): string[] {
  return scanned(path, code).map(({ name }) => name);
}

/** What is loaded together with the file, and not by a call in it. */
function loadedBy(path: string, code: string): string[] {
  const found = scanned(path, code).filter(({ kind }) => kind === "import-statement");
  return found.map(({ name }) => name);
}

function scanned(path: string, code: string): { name: string; kind: string }[] {
  const found = new Bun.Transpiler({ loader: path.endsWith("x") ? "tsx" : "ts" }).scanImports(code);
  return found.map(({ path: name, kind }) => ({
    name: name.startsWith(".") ? normalize(join(path, "..", name)) : name,
    kind,
  }));
}

function packageOf(name: string): string {
  return name.split("/", name.startsWith("@") ? 2 : 1).join("/");
}

function importFault(path: string, name: string): string[] {
  const door = DOORS.find(([library]) => library.test(name))?.[1];
  if (door && !door.test(path)) return [`${path} imports ${name} beside its door`];
  if (!door && !OWN.test(name)) return [`${path} imports ${name}, which has no door`];
  return (rowOf(name) ?? 0) > (rowOf(path) ?? 0) ? [`${path} imports ${name}, which is in a higher row`] : [];
}

function fileFaults(path: string, code: string): string[] {
  const reads = /\b(process|Bun)\.env\b/.test(code) && !path.startsWith("src/config/");
  const opens = /\bnew Sqlite\(/.test(code) && !/^src\/db\/(open-sqlite|locks)\.ts$/.test(path);
  const queues =
    /(updateTable|deleteFrom|insertInto)\("jobs"\)|insertRow\(\w+, "jobs"/.test(code) &&
    !/^src\/(jobs\/|db\/account-jobs\.ts$)/.test(path);
  const dares = /\bsynchronous\s*[=(](?!\s*FULL\b)/i.test(code) && path !== "src/db/open-sqlite.ts";
  const stalls =
    /\bURL\.(parse|canParse)\(|\bdomainToASCII\b|\.normalize\(/.test(code) &&
    !/^src\/(lib\/(web-address|normal-form)|api|http\/request)\.ts$|^src\/dashboard\//.test(path);
  return [
    ...(stalls
      ? [`${path} reads an address or puts marks in order beside lib/web-address.ts and normal-form.ts`]
      : []),
    ...(opens ? [`${path} opens a database beside openSqlite`] : []),
    ...(queues ? [`${path} writes jobs beside src/jobs`] : []),
    ...(dares ? [`${path} asks for commits that are not synced`] : []),
    ...(reads ? [`${path} reads the environment`] : []),
    ...(rowOf(path) === undefined ? [`${path} is in no row`] : []),
  ];
}

function rowOf(path: string): number | undefined {
  return ROWS.find(([pattern]) => pattern.test(path))?.[1];
}

function circles(imports: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const visit = (path: string, trail: string[]): string[] => {
    if (trail.includes(path))
      return [`${[...trail.slice(trail.indexOf(path)), path].join(" > ")} is a circle`];
    if (done.has(path)) return [];
    const found = (imports.get(path) ?? []).flatMap((name) => visit(name, [...trail, path]));
    done.add(path);
    return found;
  };
  return [...imports.keys()].flatMap((path) => visit(path, []));
}

async function readSources(): Promise<Sources> {
  const root = join(import.meta.dir, "..");
  const paths = await Array.fromAsync(new Bun.Glob("{src,migrations}/**/*.{ts,tsx}").scan({ cwd: root }));
  const read = paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const);
  return Object.fromEntries(await Promise.all(read));
}
