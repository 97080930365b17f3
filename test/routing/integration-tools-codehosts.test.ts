import { describe, expect, test } from "bun:test";
import { createEmulator } from "emulate";
import { startStandIn } from "../support/api-stand-in.ts";
import { issueB, noteB, startCodehostB } from "../support/codehost-b-server.ts";
import { integrationRoom, TOKEN } from "../support/integration-room.ts";

const HELLO = { repository: "octocat/hello" };

describe("GitHub's tools", () => {
  test("open, find, read and comment issues, read files and list pull requests", async () => {
    await using github = await startGithub();
    await using room = await integrationRoom("codehost-a", { base_url: github.base_url });
    const opened = await room.use("create_issue", { ...HELLO, title: "Door\nsqueaks", body: "It is loud." });
    expect(opened).toEqual({
      ok: true,
      files: [],
      places: [{ id: "octocat/hello#1", name: null }],
      text: expect.stringMatching(/^Opened issue #1 in octocat\/hello: http.*\/octocat\/hello\/issues\/1$/),
    });
    const comment = { ...HELLO, number: 1, body: "Oil it." };
    expect((await room.use("comment_issue", comment)).text).toMatch(
      /^Added comment 1: http.*#issuecomment-1$/,
    );

    const read = await room.use("read_issue", { ...HELLO, number: 1 });
    expect(read.text).toMatch(/^#1 Door squeaks\nState: open\nBy: octocat on \d{4}-\d\d-\d\d\nURL: http/);
    expect(read.text).toMatch(/\n\nIt is loud\.\n\nComment by octocat on \d{4}-\d\d-\d\d:\nOil it\.$/);

    const found = await room.use("search_issues", { ...HELLO, query: "squeaks" });
    expect(found.text).toMatch(
      /^Issues found:\n- octocat\/hello#1 Door squeaks \(open, by octocat, 1 comment, updated [\d-]+\) http/,
    );
    expect((await room.use("search_issues", { query: "nothing like it" })).text).toBe("Nothing was found.");

    expect((await room.use("read_file", { ...HELLO, path: "README.md" })).text).toBe(
      "File README.md (8 bytes):\n\n# hello\n",
    );
    expect((await room.use("read_file", { ...HELLO, path: "/README.md", ref: "main" })).ok).toBe(true);
    expect((await room.use("read_file", HELLO)).text).toBe("Folder /:\n- README.md");
    expect((await room.use("read_file", { ...HELLO, ref: "nowhere" })).text).toStartWith(
      "GitHub at 127.0.0.1",
    );

    expect((await room.use("list_pull_requests", HELLO)).text).toBe("Nothing was found.");
    await github.branch("mend", "fix.txt");
    const pull = { title: "Mend it", head: "mend", base: "main" };
    expect((await github.post("/repos/octocat/hello/pulls", pull)).status).toBe(201);
    expect((await room.use("list_pull_requests", { ...HELLO, state: "open" })).text).toMatch(
      /^Pull requests, newest first:\n- #2 Mend it \(open, by octocat, .*updated [\d-]+\) http.*\/pull\/2$/,
    );
  });

  test("list at most 50 and say how many more there are", async () => {
    await using server = startStandIn(({ path, query }) => {
      const items = (count: number) =>
        Array.from({ length: count }, (_, index) => ({ number: index, title: "x" }));
      const size = Number(query["per_page"]);
      if (path === "/search/issues") return Response.json({ total_count: 73, items: items(size) });
      if (path.endsWith("/comments")) return Response.json(items(size));
      if (path.endsWith("/issues/5")) return Response.json({ number: 5, title: "x", comments: 51 });
      const link =
        '<https://api.github.com/x?page=2>; rel="next", <https://api.github.com/x?page=9>; rel="last"';
      return Response.json(items(size), { headers: { link } });
    });
    await using room = await integrationRoom("codehost-a", { base_url: server.origin });
    const found = (await room.use("search_issues", { query: "x" })).text.split("\n");
    expect(found).toHaveLength(52);
    expect(found.at(-1)).toBe("(Not shown: 23 more. Ask more narrowly to see them.)");
    const pulls = (await room.use("list_pull_requests", HELLO)).text;
    expect(pulls).toEndWith("(Not shown: some more. Ask more narrowly to see them.)");
    const issue = (await room.use("read_issue", { ...HELLO, number: 5 })).text;
    expect(issue).toEndWith("(Not shown: 1 more comment. See the URL above.)");
    const { headers, query } = server.calls[0] ?? {};
    expect(headers).toMatchObject({
      accept: "application/vnd.github+json",
      "user-agent": "Mailwright",
      "x-github-api-version": "2022-11-28",
      authorization: `Bearer ${TOKEN}`,
    });
    await room.use("search_issues", { query: "x org:acme", state: "all" });
    expect(server.calls.at(-1)?.query["q"]).toBe("x org:acme is:issue");
    expect(query).toMatchObject({ q: "x is:issue involves:@me state:open", per_page: "50" });
  });

  test("say what a path is that is no readable text file", async () => {
    const content = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64");
    const answers: Record<string, unknown> = {
      "logo.png": { type: "file", encoding: "base64", content: content(new Uint8Array([137, 80, 0, 255])) },
      "nul.txt": { type: "file", encoding: "base64", content: content("a\0b") },
      "large.csv": { type: "file", encoding: "none", content: "", size: 3_000_000 },
      vendor: { type: "submodule", size: 0 },
      "long.txt": { type: "file", encoding: "base64", content: content("é".repeat(60_000)) },
    };
    await using server = startStandIn(({ path }) => Response.json(answers[path.split("/").at(-1) ?? ""]));
    await using room = await integrationRoom("codehost-a", { base_url: server.origin });
    const read = async (path: string) => (await room.use("read_file", { ...HELLO, path })).text;
    expect(await read("logo.png")).toBe("logo.png is not a text file (4 bytes), so it is not shown.");
    expect(await read("nul.txt")).toContain("is not a text file");
    expect(await read("large.csv")).toBe(
      "large.csv has 3000000 bytes; only files of at most 1 MB can be read.",
    );
    expect(await read("vendor")).toBe("vendor is a submodule, not a file.");
    expect(await read("long.txt")).toEndWith("(Cut here: these are the first 50000 of 60031 characters.)");
    expect((await read("long.txt")).length).toBeLessThan(50_100);
  });

  test("find issues on Gitea, which has another search", async () => {
    const issue = { number: 3, title: "Leak", state: "open", repository: { full_name: "ada/house" } };
    await using server = startStandIn(({ path }) =>
      /^\/git\/api\/v1\/repos\/(issues\/search|ada\/house\/issues)$/.test(path)
        ? Response.json([issue], { headers: { "x-total-count": "4" } })
        : undefined,
    );
    await using room = await integrationRoom("codehost-a", { base_url: `${server.origin}/git/api/v1` });
    const all = await room.use("search_issues", { query: "leak", state: "closed" });
    expect(all.text).toStartWith("Issues found:\n- ada/house#3 Leak (open, by somebody");
    expect(all.text).toEndWith("(Not shown: 3 more. Ask more narrowly to see them.)");
    expect((await room.use("search_issues", { query: "leak", repository: "ada/house" })).ok).toBe(true);
    expect(server.calls[0]?.query).toMatchObject({ q: "leak", type: "issues", state: "closed", limit: "50" });
  });

  test("follow a repository that was renamed once, but never to elsewhere", async () => {
    let location = "";
    let status = 301;
    await using elsewhere = startStandIn(() => Response.json([]));
    await using server = startStandIn(({ path }) =>
      path.startsWith("/api/repositories/")
        ? Response.json({ number: 1, title: "Moved", html_url: "https://x/1" })
        : new Response(null, { status, headers: { location } }),
    );
    await using room = await integrationRoom("codehost-a", { base_url: `${server.origin}/api` });
    const read = () => room.use("read_issue", { ...HELLO, number: 1 });
    const write = () => room.use("create_issue", { ...HELLO, title: "x" });
    for (status of [301, 307, 308]) {
      location = `${server.origin}/api/repositories/7/issues/1`;
      expect(await read()).toMatchObject({ ok: true });
      location = "/api/repositories/7/issues/1";
      expect(await read()).toMatchObject({ ok: true });
      expect(await write()).toMatchObject({ ok: status !== 301 });
    }
    expect(server.calls.at(-1)).toMatchObject({ method: "POST", body: { title: "x" } });
    const strange = [
      `${elsewhere.origin}/api/repositories/7`,
      `${server.origin}/apiary/7`,
      `${server.origin}/api/../admin`,
      "/api/%2e%2e/admin",
      `http://user@${server.origin.slice(7)}.evil.example/api/7`,
      "http://169.254.169.254/api/",
      `http://user:word@${server.origin.slice("http://".length)}/api/7`,
      "file:///etc/passwd",
      "",
      `${server.origin}/api/repos/octocat/again`,
    ];
    for (location of strange) {
      const answer = await read();
      expect(answer).toMatchObject({ ok: false });
      expect(answer.text).toContain("redirects to another address, which is not followed");
    }
    expect(elsewhere.calls).toHaveLength(0);
    expect(server.calls.every(({ path }) => path.startsWith("/api/"))).toBe(true);
    status = 302;
    location = "/api/repositories/7/issues/1";
    expect(await read()).toMatchObject({ ok: false });
  });
});

describe("GitLab's tools", () => {
  const SITE = { project: "acme/tools/website" };

  test("open, find, read and comment issues, read files and list merge requests", async () => {
    await using gitlab = startCodehostB(TOKEN);
    await using room = await integrationRoom("codehost-b", { base_url: `${gitlab.origin}/api/v4/` });
    const opened = await room.use("create_issue", { ...SITE, title: "Door squeaks", body: "Loud." });
    expect(opened.text).toBe(
      "Opened issue #1 in acme/tools/website: https://gitlab.example/acme/tools/website/-/issues/1",
    );
    const comment = { project: "acme/tools/website", number: 1, body: "Oil it." };
    expect((await room.use("comment_issue", comment)).text).toBe(
      "Added comment 900 to issue #1 in acme/tools/website.",
    );
    const found =
      "Issues found:\n- acme/tools/website#1 Door squeaks (opened, by ada, 0 comments, updated 2026-01-03) https://gitlab.example/acme/tools/website/-/issues/1";
    expect((await room.use("search_issues", { query: "squeaks" })).text).toBe(found);
    expect((await room.use("search_issues", { ...SITE, query: "Loud", state: "all" })).text).toBe(found);
    expect((await room.use("search_issues", { query: "squeaks", state: "closed" })).text).toBe(
      "Nothing was found.",
    );
    expect((await room.use("list_merge_requests", { ...SITE, state: "merged" })).text).toMatch(
      /^Merge requests, newest first:\n- #7 Mend the door \(merged, by ada.*merge_requests\/7$/,
    );
    gitlab.files
      .set("README.md", "# Site\n")
      .set("docs/a b#c?.md", "odd")
      .set("logo.png", Buffer.from([0, 255]));
    const read = async (args: object) => (await room.use("read_file", { ...SITE, ...args })).text;
    expect(await read({ path: "README.md" })).toBe("File README.md (7 bytes):\n\n# Site\n");
    expect(await read({ path: "docs/a b#c?.md", ref: "main" })).toEndWith("\n\nodd");
    expect(await read({ path: "logo.png" })).toContain("is not a text file (2 bytes)");
    expect(await read({ path: "docs/" })).toBe("Folder docs:\n- a b#c?.md");
    expect(await read({})).toBe("Folder /:\n- README.md\n- docs/\n- logo.png");
    expect(await read({ path: "gone.md" })).toContain("(404) has no such thing, or does not show it");
  });

  test("show comments without what the server notes itself, and count the rest", async () => {
    await using gitlab = startCodehostB(TOKEN);
    await using room = await integrationRoom("codehost-b", { base_url: gitlab.origin });
    gitlab.issues.push(issueB(1, "Long", { user_notes_count: 70, labels: ["bug", "door"] }));
    gitlab.notes.push(noteB(1, "changed the title", { system: true }));
    for (let id = 2; id <= 71; id += 1) gitlab.notes.push(noteB(id, `note ${id}`));
    const { text } = await room.use("read_issue", { ...SITE, number: 1 });
    expect(text).toStartWith(
      "#1 Long\nState: opened\nBy: ada on 2026-01-02\nLabels: bug, door\nURL: https://",
    );
    expect(text).not.toContain("changed the title");
    expect(text).toContain("Comment by ben on 2026-01-04:\nnote 2\n");
    expect(text).toEndWith("(Not shown: 21 more comments. See the URL above.)");
  });

  test("write no line that GitLab would carry out", async () => {
    await using gitlab = startCodehostB(TOKEN);
    await using room = await integrationRoom("codehost-b", { base_url: gitlab.origin });
    const body = [
      "/close",
      "Hello",
      "  /move evil/project",
      "/add_email thief@evil.example",
      "\t/confidential",
      "::include{file=https://evil.example/}",
      "a\r/assign @thief",
      "b\u2028/label ~x",
      "```\n/unlabel\n```",
      "1/2 and https://example.com/close stay",
    ].join("\n");
    expect((await room.use("create_issue", { ...SITE, title: "x", body })).ok).toBe(true);
    expect((await room.use("comment_issue", { ...SITE, number: 1, body: `\n \n${body}` })).ok).toBe(true);
    expect(gitlab.actions).toEqual([]);
    expect(gitlab.issues[0].description).toStartWith("\\/close\nHello\n  \\/move evil/project\n");
    expect(gitlab.issues[0].description).toContain("\n\\::include{");
    expect(gitlab.issues[0].description).toEndWith("1/2 and https://example.com/close stay");
  });
});

test("no text for a code host makes it fetch a picture", async () => {
  const body = [
    "![a](https://evil.example/?q=1)",
    "!![b][ref]",
    "<img src=https://evil.example/2>",
    "<IMG/src='https://evil.example/3'>",
    "<picture><source srcset=x></picture><video poster=x>",
    '```mermaid\nA@{ img: "https://evil.example/4" }\n```',
    "> ~~~~ PlantUML",
    "```&#109;ermaid\nA\n```",
    "see [[a|https://evil.example/5.png]]",
    "A List<String> and [a link](https://example.com/) stay.",
  ].join("\n");
  await using gitlab = startCodehostB(TOKEN);
  await using room = await integrationRoom("codehost-b", { base_url: gitlab.origin });
  await room.use("create_issue", { project: "acme/tools/website", title: "x", body });
  await using server = startStandIn(() => Response.json({ number: 1, id: 1 }));
  await using other = await integrationRoom("codehost-a", { base_url: server.origin });
  await other.use("create_issue", { ...HELLO, title: "x", body });
  await other.use("comment_issue", { ...HELLO, number: 1, body });
  const sent = [gitlab.issues[0].description, ...server.calls.map((call) => call.body.body)];
  expect(sent).toHaveLength(3);
  for (const text of sent) {
    expect(text).not.toMatch(/!\[|<(img|picture|source|video)/i);
    expect(text).toContain("```text mermaid\n");
    expect(text).toContain("> ~~~~text PlantUML\n");
    expect(text).toContain("```text &#109;ermaid\n");
    expect(text).toContain("see [ [a|https://evil.example/5.png]]\n");
    expect(text).toEndWith("A List<String> and [a link](https://example.com/) stay.");
  }
});

async function startGithub() {
  const emulator = await createEmulator({
    service: "github",
    port: 0,
    seed: {
      tokens: { [TOKEN]: { login: "octocat", scopes: ["repo"] } },
      github: {
        users: [{ login: "octocat", name: "Octocat" }],
        repos: [{ owner: "octocat", name: "hello", auto_init: true }],
      },
    },
  });
  const base_url = emulator.url.replace("localhost", "127.0.0.1");
  const send = (method: string) => (path: string, body: object) =>
    fetch(base_url + path, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return {
    base_url,
    post: send("POST"),
    /** A branch off main with one more file. */
    branch: async (name: string, file: string) => {
      const head = await fetch(`${base_url}/repos/octocat/hello/git/ref/heads/main`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const { object } = (await head.json()) as { object: { sha: string } };
      await send("POST")("/repos/octocat/hello/git/refs", { ref: `refs/heads/${name}`, sha: object.sha });
      const content = Buffer.from("x").toString("base64");
      await send("PUT")(`/repos/octocat/hello/contents/${file}`, { message: "m", content, branch: name });
    },
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}
