import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/**
 * Whether there is a test of these titles, each that of a test, of a group, or of one row of a table of tests, as in
 * `test/x.test.ts › "group" › "test"`.
 */
export async function isTest(name: string): Promise<boolean> {
  const [path = "", ...titles] = name.replaceAll("`", "").split(" › ");
  const file = Bun.file(join(ROOT, path));
  if (titles.length === 0 || !(await file.exists())) return false;
  const source = await file.text();
  let at = 0;
  for (const title of titles) {
    const before = source.slice(0, source.indexOf(title, at)).trimEnd();
    if (!source.includes(title, at) || !/(?:\b(?:test|describe)|\))\($|\[$/.test(before)) return false;
    at = before.length;
  }
  return true;
}
