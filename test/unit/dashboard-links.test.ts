import { expect, test } from "bun:test";

const ROUTER = await Bun.file(`${import.meta.dir}/../../src/dashboard/router.tsx`).text();
/** The paths of pages as patterns: "/inboxes/$inbox_id" takes any one name. The last one, "$", is for what is no page. */
const PAGES = [...ROUTER.matchAll(/\bpath: "(\/[^"]*)"/g)].map(
  ([, path = ""]) => new RegExp(`^/app${path.replaceAll(/\$\w+/g, "[^/]+")}$`),
);

/** Everything that is not the dashboard itself and names a page of it: letters, refusals, sites that are come back from. */
const SOURCES = await Array.fromAsync(
  new Bun.Glob("{src,docs}/**/*.{ts,md}").scan(`${import.meta.dir}/../..`),
);

interface Link {
  file: string;
  path: string;
}

async function linksIn(file: string): Promise<Link[]> {
  const text = await Bun.file(`${import.meta.dir}/../../${file}`).text();
  const links = text.matchAll(/(?:base_url\}|here\}|%|https:\/\/[\w.-]+)(\/app\/(?:\$\{[^}]*\}|[\w/.-])*)/g);
  return [...links].map(([, path = ""]) => ({
    file,
    path: path.replaceAll(/\$\{[^}]*\}/g, "ID").replace(/\.$/, ""),
  }));
}

const LINKS = (
  await Promise.all(SOURCES.filter((file) => !file.startsWith("src/dashboard/")).map(linksIn))
).flat();

test("every link of a letter leads to a page of the dashboard", () => {
  expect(PAGES.length).toBeGreaterThan(20);
  expect(LINKS.map(({ path }) => path)).toContain("/app/approvals/ID");
  expect(LINKS.length).toBeGreaterThan(20);
  const lost = LINKS.filter(
    ({ path }) => path.startsWith("/app/ID") || !PAGES.some((page) => page.test(path)),
  );
  expect(lost).toEqual([]);
});
