/**
 * Refuses patterns that take more than linear time over some text: texts that others write reach nearly all of them,
 * and one that takes its time holds everybody else. Those of the libraries that read such texts in the server's own
 * process are looked through too; the others work in processes, which can be ended. `bun scripts/check-patterns.ts [FILE…]`
 */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";

import { EXCEPTIONS } from "./patterns/exceptions.ts";
import { patternsIn } from "./patterns/find.ts";
import { objectionTo } from "./patterns/linear.ts";

const ROOT = join(import.meta.dir, "..");
const OWN = "{src,migrations,scripts}/**/*.{ts,tsx,js}";
const LIBRARIES = [
  "mailauth/lib/**/*.js",
  "mx-connect/lib/**/*.js",
  "nodemailer/dist/esm/**/*.js",
  "smtp-server/dist/esm/**/*.js",
  "dns-packet/*.js",
  "sanitize-html/*.js",
  "markdown-it/**/*.mjs",
  "linkify-it/**/*.mjs",
  "mdurl/**/*.mjs",
  "entities/dist/**/*.js",
  "htmlparser2/dist/**/*.js",
  "ipaddr.js/lib/ipaddr.js",
  "oauth4webapi/build/index.js",
  "tldts/**/*.js",
].map((path) => `node_modules/${path}`);

const named = process.argv.slice(2);
const files = named.length > 0 ? named : (await Promise.all([OWN, ...LIBRARIES].map(filesAt))).flat();
const used = new Set<unknown>();
const faults: string[] = [];
for (const file of files) {
  const text = await readFile(resolve(ROOT, file), "utf8");
  for (const { line, pattern, text: shown } of patternsIn(file, text)) {
    const why = pattern === null ? unknownIn(file) : objectionTo(pattern);
    if (why === null) continue;
    const exception = EXCEPTIONS.find((one) => one.file === file && pattern?.source.startsWith(one.source));
    if (exception === undefined) faults.push(`${file}:${line} ${shown}\n  ${why}`);
    else used.add(exception);
  }
}
if (named.length === 0)
  for (const exception of EXCEPTIONS.filter((one) => !used.has(one)))
    faults.push(
      `${exception.file} /${exception.source}/\n  is excepted, but there is nothing to except it from`,
    );
if (faults.length > 0) {
  console.error(faults.join("\n"));
  console.error(
    `\n${faults.length} patterns may take more than linear time. Write them so that what a loop takes cannot be what stands before or behind it, scan by hand, or cut the text before and except the pattern in scripts/patterns/exceptions.ts.`,
  );
  process.exit(1);
}

async function filesAt(path: string): Promise<string[]> {
  const found = await Array.fromAsync(new Bun.Glob(path).scan(ROOT));
  if (found.length === 0) throw new Error(`There is no file at ${path}.`);
  return found.sort();
}

/** Why a pattern that only a run would tell is refused; null in a library, which is not ours to write. */
function unknownIn(file: string): string | null {
  return file.startsWith("node_modules/") ? null : "it is not a constant of this file";
}
