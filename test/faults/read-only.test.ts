import { expect, test } from "bun:test";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { readOnly, whyNoMounts } from "./disks.ts";
import { account, house } from "./house.ts";

const reason = await whyNoMounts("tmpfs");
if (reason !== undefined) console.log(`A read-only disk is not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "a data folder that can only be read is said to be so by each command, with a way that works",
  async () => {
    await using at = await house();
    await account(at, "ada@example.com");
    const copy = `${at.dir}-copy`;
    {
      await using _disk = await readOnly(at.dir);
      for (const words of [
        ["backup", `${at.dir}.zip`],
        ["doctor"],
        ["user", "list"],
        ["migrate", "status"],
        ["serve"],
      ]) {
        const { code, err } = await at.cli(...words);
        expect([words, code]).toEqual([words, 1]);
        expect(err).toContain(`The data folder ${at.dir} is on a disk that can only be read.`);
        expect(err).toContain("MAILWRIGHT_DATA__DIR=");
      }
      await cp(at.dir, copy, { recursive: true });
    }
    const child = at.spawn({ MAILWRIGHT_DATA__DIR: copy }, "backup", join(copy, "..", "copied.zip"));
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
    await rm(copy, { recursive: true });
  },
);
