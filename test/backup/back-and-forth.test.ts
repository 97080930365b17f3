import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, readdir, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import type { Config } from "../../src/config/config.ts";
import { sweepFiles } from "../../src/operation/retention/tidy-segments.ts";
import { backupLab, contentOf, type Lab, NOW, openApp, restored, storeLarge } from "../support/backups.ts";

const LARGE = 70_000;
const never = new AbortController().signal;

let lab: Lab;
beforeAll(async () => {
  lab = await backupLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

/** Stores a mail, as a server does that is then stopped; gives the segment it is in. */
async function oneMore(config: Config): Promise<number> {
  await using app = await openApp(config);
  await storeLarge(app);
  return app.segments.position().segment;
}

/** What each start of a server does with the files of mails. */
async function sweep(config: Config): Promise<void> {
  await using app = await openApp(config);
  expect(await sweepFiles(app, never)).toBe(true);
}

async function archiveOf(config: Config, mail: boolean): Promise<string> {
  const path = `${config.data.dir}.zip`;
  await backupToFile({ ...sourceOf(config, NOW), mail }, path, never);
  return path;
}

async function restore(config: Config, archive: string): Promise<string> {
  const { restore_point } = (await restored(config, archive)) as { restore_point: string };
  return restore_point;
}

/** As docs/backup.md says: exchanges what is there for what the restore point has, and gives where that is now. */
async function goTo(point: string, { data, database }: Config): Promise<string> {
  const aside = join(data.dir, "restore-points", `${basename(point)}-left`);
  await mkdir(aside);
  const path = database.url.replace(/^sqlite:/, "");
  const apart = dirname(path) === data.dir ? [] : [`.before-${basename(point)}`];
  for (const end of apart) {
    await rename(path, `${path}.before-${basename(aside)}`);
    await rename(`${path}${end}`, path);
  }
  for (const name of await readdir(point)) {
    await rename(join(data.dir, name), join(aside, name));
    await rename(join(point, name), join(data.dir, name));
  }
  return aside;
}

const PLACES: [string, (name: string) => Config][] = [
  ["in the data folder", (name) => lab.config(name)],
  [
    "elsewhere",
    (name) => lab.config(name, { database: { url: `sqlite:${join(lab.base, `${name}-db`, "mail.db")}` } }),
  ],
];

describe.each(PLACES)("with the database %s", (place, configOf) => {
  test.each([true, false])(
    "going back and forth loses no mail of either side; an archive with mails: %p",
    async (mail) => {
      const config = configOf(`both-${mail}-${place.replaceAll(" ", "-")}`);
      await restore(config, lab.archive);
      const archive = await archiveOf(config, mail);
      await oneMore(config);
      const newer = await restore(config, archive);
      await sweep(config);
      await oneMore(config);
      await oneMore(config);
      const older = await goTo(newer, config);
      await sweep(config);
      expect((await contentOf(config)).mails).toEqual([LARGE, LARGE]);
      await oneMore(config);
      await goTo(older, config);
      await sweep(config);
      expect((await contentOf(config)).mails).toEqual([LARGE, LARGE, LARGE]);
    },
  );
});

test.each([true, false])(
  "no file that a restore finds, or brings, is written to again; an archive with mails: %p",
  async (mail) => {
    const config = await lab.other(`closed-${mail}`);
    const archive = await archiveOf(config, mail);
    expect(await oneMore(config)).toBe(1);
    await restore(config, archive);
    expect(await oneMore(config)).toBe(2);
    await restore(config, archive);
    expect(await oneMore(config)).toBe(3);
    expect((await contentOf(config)).mails).toEqual([LARGE, LARGE]);
  },
);
