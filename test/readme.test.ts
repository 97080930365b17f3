import { describe, expect, test } from "bun:test";
import { chmod, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dnsRecords } from "../src/mail/writing/dkim.ts";
import { MESSAGE_STATES } from "../src/reasons.ts";
import { factsOf } from "../src/resources/messages/states.ts";
import { builtBinary } from "./support/binary.ts";
import { freePort } from "./support/free-port.ts";
import { keysOf } from "./support/keys.ts";

const ROOT = join(import.meta.dir, "..");
const BINARY = await builtBinary();
const MISSING = ["curl", "openssl"].filter((name) => Bun.which(name) === null);

if (MISSING.length > 0) console.log(`skipped: apt-get install --no-install-recommends ${MISSING.join(" ")}`);

describe.skipIf(MISSING.length > 0)("the README and docs/api.md", () => {
  test("its quick start works as it stands, from the configuration to the answers", async () => {
    await using desk = await openDesk();
    const [configure = "", start = "", ...rest] = desk.blocks;
    expect(await desk.run(configure)).toContain("Configuration is valid. File: config.toml");
    await using _server = await desk.serve(start);
    // The mail is written twice: it is another one then, and not the first that comes again.
    const printed = await desk.run([...rest.slice(0, 3), rest[2]].join("\n"));
    expect(printed).toMatch(/^Key mw_live_\w+, inbox desk-\w+@mail\.example\.org$/m);
    const [asked = "", listed = "", again = ""] = printed.split("\n").filter((line) => line.startsWith("{"));
    expect(JSON.parse(asked)).toMatchObject({ status: "done", credits: { charged: 1 } });
    expect((JSON.parse(asked) as { result: string }).result).toContain(
      "> The bridge opens on 3 May at 10:30.",
    );
    const [first, second] = [listed, again].map((list) => {
      const { items } = JSON.parse(list) as { items: { message_id: string; status: string }[] };
      expect(items).toMatchObject([{ source: "email", subject: "Bridge", sender: "you@example.com" }]);
      expect(["received", "done"]).toContain(items[0]?.status ?? "");
      return items[0]?.message_id;
    });
    expect(second).not.toBe(first);
    const records = await desk.run(rest.find((block) => block.includes("dns records")) ?? "");
    for (const { name, value } of dnsRecords(await keysOf(join(desk.folder, "data")), "mail.example.org"))
      expect(records).toContain(`${name}\n      ${value}\n`);
    // Without a public name of this machine the record has no value yet.
    expect(await Bun.file(join(desk.folder, "mailwright.zone")).text()).toMatch(
      /mail\.example\.org\. IN MX (?:10 \S+\.\S+|…)$/m,
    );
  }, 30_000);

  test("the walk through the interface with curl works as it stands, from the login code to the file", async () => {
    await using desk = await openDesk();
    const [configure = "", start = ""] = desk.blocks;
    const walk = desk.blocks.indexOf(desk.blocks.find((block) => block.includes("/auth/request-code")) ?? "");
    const [ask = "", signIn = "", furnish = "", work = ""] = desk.blocks.slice(walk, walk + 4);
    await desk.run(configure);
    await using server = await desk.serve(start);
    expect(JSON.parse(await desk.run(ask))).toEqual({ retry_after: 60 });
    const code = /code=(\d{6})/.exec(await server.said(" code="))?.[1] ?? "";
    expect(signIn).toContain("CODE=123456");
    const own = signIn.replace("CODE=123456", `CODE=${code}`);
    const helpers = ask.slice(0, ask.lastIndexOf("\ncurl "));
    const printed = await desk.run([helpers, own, furnish, work].join("\n"));
    const [me, tested, context, next, thread] = printed
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(me).toMatchObject({ email: "ada@example.com", email_verified: true });
    expect(tested).toMatchObject({ ok: true, kind: "demo" });
    expect(context).toMatchObject({ slug: "house-style", kind: "instruction" });
    expect(next).toMatchObject({ status: "done" });
    expect(thread).toMatchObject({
      turns: [{ instruction: "Which month was better?" }, { instruction: "And the worse one?" }],
    });
    expect(await Bun.file(join(desk.folder, "sales.csv")).text()).toBe("month,sales\nMay,120\nJune,90\n");
  }, 30_000);

  test("names only settings that the example configuration has", async () => {
    const example = await Bun.file(join(ROOT, "config.example.toml")).text();
    const sections = [...example.matchAll(/^\[([\w.]+)\]$/gm)].map(([, name]) => name ?? "");
    const pages = ["README.md", ...new Bun.Glob("docs/*.md").scanSync(ROOT)];
    const text = (await Promise.all(pages.map((page) => Bun.file(join(ROOT, page)).text()))).join("\n");
    const named = [...text.matchAll(/`(?:([a-z]+)\.([a-z_]+)|\[([a-z.]+)\])`/g)];
    // A lock of the data folder is called like a setting.
    const known = named.filter(
      ([name, section]) => name !== "`backup.lock`" && (section === undefined || sections.includes(section)),
    );
    expect(known.length).toBeGreaterThan(10);
    for (const [, section, key, header] of known) {
      if (header !== undefined)
        expect([header, sections.some((name) => `${header}.`.startsWith(`${name}.`))]).toEqual([
          header,
          true,
        ]);
      else expect(sectionOf(example, section ?? "")).toContain(`# ${key} = `);
    }
  });
});

test("a restore that the documents have to be pasted asks nothing: the answer would be the next line", async () => {
  const names = [...new Bun.Glob("*.md").scanSync(join(ROOT, "docs"))].map((name) => `docs/${name}`);
  const texts = ["README.md", ...names].map((name) => Bun.file(join(ROOT, name)).text());
  const blocks = (await Promise.all(texts)).flatMap((text) => text.match(/^```sh\n.*?^```$/gms) ?? []);
  const restores = blocks.flatMap((block) => block.match(/^.*mailwright restore .*$/gm) ?? []);
  expect(restores.length).toBeGreaterThan(0);
  expect(restores.filter((line) => !line.includes(" --yes"))).toEqual([]);
});

test("the README is short, and what it leads to is there", async () => {
  const text = await readme();
  const words = text.replaceAll(/^\[\^.*$/gm, "");
  expect(text.split("\n").length).toBeLessThanOrEqual(200);
  expect(words.split(/\s+/).length).toBeLessThanOrEqual(1_800);
  const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...new Bun.Glob("docs/*.md").scanSync(ROOT)];
  const lost: string[] = [];
  for (const page of pages) {
    const links = (await Bun.file(join(ROOT, page)).text())
      .replaceAll(/`[^`\n]*`/g, "")
      .matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)|(?:src|srcset)="([^"]+)"/g);
    for (const [, link = "", picture = link] of links)
      if (!(await Bun.file(join(ROOT, page, "..", link || picture)).exists()))
        lost.push(`${page}: ${link || picture}`);
  }
  expect(lost).toEqual([]);
});

test("docs/api.md has the status of each state of a message, to whoever asks", async () => {
  const api = await Bun.file(join(ROOT, "docs/api.md")).text();
  const section = /^## What became of a message$.*?^## /ms.exec(api)?.[0] ?? "";
  const rows = [...section.matchAll(/^\| .* \| `(\w+)` \| `([\w.]+)`.* \| `(\w+)` \|$/gm)];
  const facts = MESSAGE_STATES.map(factsOf).map(({ run, event, activity }) => `${run} ${event} ${activity}`);
  expect(rows.map(([, ...words]) => words.join(" "))).toEqual(facts);
});

/** An empty folder with the commands of the README, on free ports, and a `mailwright` on its path. */
async function openDesk() {
  const folder = await mkdtemp(join(tmpdir(), "mailwright-readme-"));
  const [http, smtp] = [await freePort(), await freePort()];
  const text = `${await readme()}\n${await Bun.file(join(ROOT, "docs/api.md")).text()}`.replaceAll(
    "127.0.0.1:8080",
    `127.0.0.1:${http}`,
  );
  const settled = text
    .replaceAll("127.0.0.1:2525", `127.0.0.1:${smtp}`)
    .replaceAll("/etc/mailwright/config.toml", "config.toml");
  const blocks = settled.matchAll(/^```sh\n(.*?)^```$/gms);
  const command = join(folder, "mailwright");
  await symlink(BINARY, command);
  // The user that the README has made on a server is whoever runs this.
  await Bun.write(join(folder, "sudo"), '#!/bin/sh\n[ "$1 $2" = "-u mailwright" ] && shift 2 && exec "$@"\n');
  await chmod(join(folder, "sudo"), 0o755);
  const options = {
    cwd: folder,
    env: { PATH: `${folder}:/usr/local/bin:/usr/bin:/bin`, NO_PROXY: "127.0.0.1" },
  };
  return {
    folder,
    blocks: [...blocks].map(([, block]) => block ?? ""),
    async run(script: string): Promise<string> {
      const shell = Bun.spawn(["sh", "-eu", "-c", script], { ...options, stdin: "ignore", stderr: "pipe" });
      const out = await new Response(shell.stdout).text();
      expect(await new Response(shell.stderr).text()).toBe("");
      expect(await shell.exited).toBe(0);
      return out.replaceAll("}{", "}\n{");
    },
    async serve(script: string): Promise<AsyncDisposable & { said: (words: string) => Promise<string> }> {
      const server = Bun.spawn(["sh", "-c", `exec ${script.trim()}`], { ...options, stdin: "ignore" });
      const reader = server.stdout.getReader();
      let log = "";
      const said = async (words: string): Promise<string> => {
        while (!log.includes(words)) {
          const { value, done } = await reader.read();
          if (done) throw new Error(`The server ended before it said "${words}": ${log}`);
          log += new TextDecoder().decode(value);
        }
        return log;
      };
      await said(" ready ");
      return {
        said,
        async [Symbol.asyncDispose]() {
          server.kill("SIGTERM");
          await server.exited;
        },
      };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

function sectionOf(example: string, name: string): string {
  return example.split(/^(?=\[)/m).find((part) => part.startsWith(`[${name}]`)) ?? "";
}

function readme(): Promise<string> {
  return Bun.file(join(ROOT, "README.md")).text();
}
