import { describe, expect, test } from "bun:test";
import { Ajv } from "ajv";
import fc from "fast-check";
import type { Tool } from "../../src/trust/guard/tool.ts";
import { grantedColumns } from "../../src/resources/connections/sealed.ts";
import { integrationTools } from "../../src/resources/integrations/tools.ts";
import { type StandIn, startStandIn } from "../support/api-stand-in.ts";
import { integrationRoom, type IntegrationRoom, TOKEN } from "../support/integration-room.ts";

const ID = "59833787-2cf9-4fdf-8782-e53db20768a5";
const SHEET = "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms";

/** A good call of every tool, of which every text is attacked below. */
const GOOD: Record<string, Record<string, Record<string, unknown>>> = {
  notes: {
    search: { query: "x" },
    read_page: { page_id: ID },
    create_page: { parent_id: ID, parent_type: "page", title: "x", markdown: "x" },
    append: { page_id: ID, markdown: "x" },
  },
  "codehost-a": {
    search_issues: { query: "x", repository: "a/b" },
    read_issue: { repository: "a/b", number: 1 },
    create_issue: { repository: "a/b", title: "x", body: "x" },
    comment_issue: { repository: "a/b", number: 1, body: "x" },
    read_file: { repository: "a/b", path: "x", ref: "x" },
    list_pull_requests: { repository: "a/b", state: "open" },
  },
  "codehost-b": {
    search_issues: { query: "x", project: "a/b" },
    read_issue: { project: "a/b", number: 1 },
    create_issue: { project: "a/b", title: "x", body: "x" },
    comment_issue: { project: "a/b", number: 1, body: "x" },
    read_file: { project: "a/b", path: "x", ref: "x" },
    list_merge_requests: { project: "a/b", state: "opened" },
  },
  sheets: {
    read_range: { spreadsheet_id: SHEET, range: "x" },
    append_rows: { spreadsheet_id: SHEET, range: "x", rows: [["x"]] },
    create_sheet: { title: "x", sheet: "x", rows: [["x"]] },
  },
};
const KINDS = Object.keys(GOOD);

describe("the schema of every tool", () => {
  test("is valid, closed, described and bounded, and the tool says truly what it does", async () => {
    const ajv = new Ajv({ strict: true, strictTypes: false });
    for (const tool of await allTools()) {
      const name = `${tool.target} ${tool.name}`;
      const { parameters } = tool;
      expect([name, ajv.validateSchema(parameters)]).toEqual([name, true]);
      const validate = ajv.compile(parameters);
      const good = GOOD[tool.target]?.[tool.name] ?? {};
      expect([name, validate(good)]).toEqual([name, true]);
      expect([name, validate({ ...good, other: 1 })]).toEqual([name, false]);
      expect(parameters).toMatchObject({ type: "object", additionalProperties: false });
      expect((parameters["required"] as string[]).length).toBeGreaterThan(0);
      expect([name, unboundedIn(parameters)]).toEqual([name, []]);
      expect(tool.name).toMatch(/^[a-z_]{1,40}$/);
      expect(tool.description).toMatch(/^[A-Z].{20,300}\.$/);
      expect(tool.destructive || tool.foreign).toBe(false);
      const writes = /^(create|append|comment)/.test(tool.name);
      expect([name, tool.read_only]).toEqual([name, !writes]);
      const places = Object.keys(good).filter((key) =>
        /^(repository|project|spreadsheet_id|page_id|parent_id)$/.test(key),
      );
      expect([name, tool.places]).toEqual([name, places]);
      // Everything else is known by what nobody can have twice: a path, a number, an id that no search tells of.
      const titled = places.filter((key) => /^(page_id|parent_id)$/.test(key));
      expect([name, tool.titled?.args ?? []]).toEqual([name, titled]);
    }
  });

  test("is one of a tool that GOOD has a call for, and other kinds have no tools", async () => {
    const names = (await allTools()).map(({ target, name }) => `${target} ${name}`);
    const good = Object.entries(GOOD).flatMap(([kind, calls]) =>
      Object.keys(calls).map((name) => `${kind} ${name}`),
    );
    expect(names.toSorted()).toEqual(good.toSorted());
    await using room = await integrationRoom("openai");
    const row = await rowOf(room);
    expect(integrationTools(room.app, row)).toEqual([]);
  });
});

test("of all tools only those of notes tell of places by their titles, which others may have given them", async () => {
  for (const [kind, calls] of Object.entries(GOOD)) {
    const thing = { id: ID, title: [{ plain_text: "Weekly plan" }], spreadsheetId: SHEET, number: 1, iid: 1 };
    await using server = startStandIn(() => Response.json({ ...thing, results: [thing], items: [thing] }));
    await using room = await roomAt(kind, server);
    const titles = new Set<string>();
    for (const [name, args] of Object.entries(calls))
      for (const place of (await room.use(name, args)).places ?? [])
        if (place.name !== null) titles.add(place.name);
    expect([kind, [...titles]]).toEqual([kind, kind === "notes" ? ["Weekly plan"] : []]);
  }
});

describe.each(KINDS)("every tool of %s", (kind) => {
  const calls = Object.entries(GOOD[kind] ?? {});

  test("turns each refusal into a sentence with cause and mend, and without the token", async () => {
    await using server = startStandIn(() => undefined);
    await using room = await roomAt(kind, server);
    const faults: [number, Record<string, string>, RegExp][] = [
      [400, {}, /\(400\) did not accept the request\. Change what it says is wrong\./],
      [402, {}, /asks for payment/],
      [403, {}, /does not allow this\. Check what the token may do/],
      [403, { "retry-after": "7" }, /is limiting this account's requests\. Try again in 7 seconds\./],
      [404, {}, /has no such thing, or does not show it to this account\. Check /],
      [409, {}, /met another change of the same thing\. Look at it again/],
      [410, {}, /does not offer this there any more/],
      [422, {}, /did not accept the request/],
      [429, { "retry-after": "30" }, /Try again in 30 seconds\./],
      [429, {}, /Try again later\./],
      [500, {}, /has a fault of its own\. Try again later/],
      [503, {}, /has a fault of its own/],
    ];
    for (const [status, headers, words] of faults) {
      server.first = () =>
        Response.json({ message: `No, ${TOKEN} and ${encodeURIComponent(TOKEN)}!` }, { status, headers });
      for (const [name, args] of calls) {
        const { ok, text, files } = await room.use(name, args);
        expect({ ok, files, name }).toEqual({ ok: false, files: [], name });
        expect(text).toMatch(words);
        expect(text).toContain("It said: No, [key]");
        expect(text).not.toContain(TOKEN.slice(0, 10));
      }
    }
  });

  test("ends well when the server hangs, breaks off, floods, or sends something else", async () => {
    await using server = startStandIn(() => undefined);
    await using patient = await roomAt(kind, server);
    await using impatient = await roomAt(kind, server, 60);
    const late: [() => Response | Promise<never>, RegExp][] = [
      [() => new Promise<never>(() => undefined), /did not answer in time\. Try again in a minute\.$/],
      [() => new Response(endless("")), /did not answer in time/],
    ];
    const wrong: typeof late = [
      [() => new Response(flood()), /answered with more than 4 MB\. Ask for less at once\.$/],
      [() => new Response("<html>Welcome"), /answered with a web page\. Check the base URL/],
      [() => new Response('{"results": ['), /answered with something else than JSON/],
      [
        () => new Response("[".repeat(10_000)),
        /answered with more than 200 levels\. Ask for less at once\.$/,
      ],
      [() => new Response(`[${"{},".repeat(40_000)}{}]`), /answered with more than 100,000 parts\. Ask for/],
      [
        () => new Response(null, { status: 302, headers: { location: "http://169.254.169.254/" } }),
        /not followed/,
      ],
    ];
    const [name, args] = calls[0] ?? ["", {}];
    for (const [room, broken] of [[impatient, late] as const, [patient, wrong] as const])
      for (const [answer, words] of broken) {
        server.first = answer;
        expect(await room.use(name, args)).toEqual({
          ok: false,
          files: [],
          text: expect.stringMatching(words),
        });
      }
  });

  test("reads JSON of the wrong shape without a fault of its own", async () => {
    await using server = startStandIn(() => undefined);
    await using room = await roomAt(kind, server);
    const odd = [null, 1, "x", [], {}, [[null]], { items: [1, null, {}], results: [7, { type: "x", x: 1 }] }];
    const typed = {
      properties: 4,
      sheets: [null],
      values: [1, [null, {}]],
      updates: [],
      title: 3,
      labels: [{}],
    };
    for (const answer of [...odd, typed, [typed, null], { error: { errors: 1 } }]) {
      server.first = () => Response.json(answer);
      for (const [name, args] of calls) {
        const { ok, text } = await room.use(name, args);
        expect([name, typeof ok, text.length > 0]).toEqual([name, "boolean", true]);
      }
    }
  });

  test("ends with the reason of its signal, before and during a request", async () => {
    await using server = startStandIn(() => new Promise<never>(() => undefined));
    await using room = await roomAt(kind, server);
    for (const [name, args] of calls) {
      const reason = new Error("enough");
      await expect(room.use(name, args, AbortSignal.abort(reason))).rejects.toBe(reason);
      const stop = new AbortController();
      const running = room.use(name, args, stop.signal);
      server.first = () => {
        stop.abort(reason);
        return undefined;
      };
      await expect(running).rejects.toBe(reason);
    }
  });

  test("keeps every argument in its place in the URL", async () => {
    await using server = startStandIn(() => undefined);
    await using room = await roomAt(kind, server);
    server.first = () => Response.json({});
    const attack = async (name: string, text: unknown) => {
      const args = GOOD[kind]?.[name] ?? {};
      for (const key of Object.keys(args)) {
        server.calls.length = 0;
        await room.use(name, { ...args, [key]: text });
        for (const call of server.calls) {
          expect(`${call.method} ${call.path}`).toMatch(PLACES[kind]?.[name] ?? /never/);
          for (const part of decodeURIComponent(call.path).slice(1).split(/[\\/]/)) {
            expect(part).not.toMatch(/^\.{1,2}$|\p{Cc}/u);
          }
          expect(Object.keys(call.query).filter((query) => !QUERIES.includes(query))).toEqual([]);
        }
      }
    };
    for (const [name] of calls) for (const text of ATTACKS) await attack(name, text);
    const names = fc.constantFrom(...calls.map(([name]) => name));
    const climbing = fc.array(
      fc.constantFrom("..", "/", ".", "%2e", "%2f", "a", "?", "#", ":", "\\", "@", "\0"),
    );
    const texts = fc.oneof(
      fc.string({ unit: "binary" }),
      climbing.map((parts) => parts.join("")),
    );
    await fc.assert(fc.asyncProperty(names, texts, attack), { numRuns: 100 });
  });
});

/** Where the requests of each tool may go, and nowhere else. */
const PLACES: Record<string, Record<string, RegExp>> = {
  notes: {
    search: /^POST \/base\/v1\/search$/,
    read_page: /^GET \/base\/v1\/(pages\/[\w-]+|blocks\/[\w-]+\/children)$/,
    create_page: /^(POST \/base\/v1\/pages|GET \/base\/v1\/databases\/[\w-]+)$/,
    append: /^PATCH \/base\/v1\/blocks\/[\w-]+\/children$/,
  },
  "codehost-a": {
    search_issues: /^GET \/base\/search\/issues$/,
    read_issue: /^GET \/base\/repos\/[\w.-]+\/[\w.-]+\/issues\/\d+(\/comments)?$/,
    create_issue: /^POST \/base\/repos\/[\w.-]+\/[\w.-]+\/issues$/,
    comment_issue: /^POST \/base\/repos\/[\w.-]+\/[\w.-]+\/issues\/\d+\/comments$/,
    read_file: /^GET \/base\/repos\/[\w.-]+\/[\w.-]+\/contents(\/[^/]+)*$/,
    list_pull_requests: /^GET \/base\/repos\/[\w.-]+\/[\w.-]+\/pulls$/,
  },
  "codehost-b": {
    search_issues: /^GET \/base\/api\/v4(\/projects\/[\w.%-]+)?\/issues$/,
    read_issue: /^GET \/base\/api\/v4\/projects\/[\w.%-]+\/issues\/\d+(\/notes)?$/,
    create_issue: /^POST \/base\/api\/v4\/projects\/[\w.%-]+\/issues$/,
    comment_issue: /^POST \/base\/api\/v4\/projects\/[\w.%-]+\/issues\/\d+\/notes$/,
    read_file: /^GET \/base\/api\/v4\/projects\/[\w.%-]+\/repository\/(tree|files\/[^/]+)$/,
    list_merge_requests: /^GET \/base\/api\/v4\/projects\/[\w.%-]+\/merge_requests$/,
  },
  sheets: {
    read_range: /^GET \/base\/v4\/spreadsheets\/[\w-]+(\/values\/[^/:]+)?$/,
    append_rows: /^POST \/base\/v4\/spreadsheets\/[\w-]+\/values\/[^/:]+:append$/,
    create_sheet: /^POST \/base\/v4\/spreadsheets$/,
  },
};

const QUERIES = (
  "q per_page limit state ref search scope path page_size sort order_by activity_filter " +
  "majorDimension valueRenderOption valueInputOption insertDataOption fields"
).split(" ");

const ATTACKS = [
  "..",
  ".",
  "../..",
  "../../user",
  "a/..",
  "a/../../c",
  "./a/b",
  "..%2f..%2fuser",
  "%2e%2e/%2e%2e",
  "%2E%2E",
  "a%2fb",
  "a?admin=1",
  "a/b?state=all",
  "a/b#c",
  "a/b;c",
  "a\\..\\b",
  "..\\..",
  "/etc/passwd",
  "//evil.example/x",
  "https://evil.example/",
  "a/b\r\nX-Evil: 1",
  "a/b\0",
  "a/b\u202e",
  "@evil.example/x",
  ":append",
  "A1:clear",
  "x:batchClear?x=",
  "",
  " ",
  "\ud800",
  "é/ü",
  "a".repeat(3_000),
];

describe("the token", () => {
  test("is asked for once more when it was refused, and then sent in its place", async () => {
    await using server = startStandIn(() => undefined);
    for (const kind of KINDS) {
      await using room = await roomAt(kind, server);
      server.first = async ({ headers }) => {
        if (headers["authorization"] === "Bearer second-token-1") return Response.json({});
        // As a refresh does it: what is stored is another one from now on.
        const { secrets_id } = await rowOf(room);
        await room.owner.patch(`/connections/${room.connection_id}`, { credential: "second-token-1" });
        await room.app.db.updateTable("connections").set({ secrets_id }).execute();
        return Response.json({ message: "Bad credentials" }, { status: 401 });
      };
      server.calls.length = 0;
      const [name, args] = Object.entries(GOOD[kind] ?? {})[0] ?? ["", {}];
      expect(await room.use(name, args)).toMatchObject({ ok: true });
      const tokens = server.calls.map(({ headers }) => headers["authorization"]);
      expect(tokens).toEqual([`Bearer ${TOKEN}`, "Bearer second-token-1"]);
    }
  });

  test("that is refused for good is said to need a new one, after two requests at most", async () => {
    await using server = startStandIn(() => Response.json({ message: TOKEN }, { status: 401 }));
    await using room = await roomAt("codehost-a", server);
    const args = GOOD["codehost-a"]?.["read_issue"] ?? {};
    expect((await room.use("read_issue", args)).text).toMatch(
      /^GitHub at 127\.0\.0\.1:\d+ does not accept the token any more\. Enter a valid one in this connection\.$/,
    );
    expect(server.calls).toHaveLength(1);
    const row = await rowOf(room);
    const [tool] = integrationTools(room.app, { ...row, auth: "oauth" });
    const answer = await tool?.call({ query: "x" }, new AbortController().signal);
    expect(answer?.text).toEndWith("does not accept the token any more. Connect it again.");
  });

  test("is refreshed when it has ended, and when the interface refuses it", async () => {
    let good = "access-token-2";
    await using server = startStandIn(({ path, headers }) => {
      if (path === "/token")
        return Response.json({
          access_token: good,
          token_type: "bearer",
          expires_in: 7_200,
          refresh_token: "r",
        });
      const isGood = headers["authorization"] === `Bearer ${good}`;
      return Response.json([], { status: isGood ? 200 : 401 });
    });
    const urls = { authorize_url: `${server.origin}/agree`, token_url: `${server.origin}/token` };
    const settings = { client_id: "c", client_secret: "s", ...urls, api_base: server.origin };
    const config = { integrations: { "codehost-b": settings } };
    await using room = await integrationRoom("codehost-b", { config });
    const oauth = { refresh_token: "r", account: "ada", server: null, ended: false };
    const granted = { credential: "access-token-1", expires_at: room.app.now() - 1, oauth };
    const row = await rowOf(room);
    await room.app.db
      .updateTable("connections")
      .set(grantedColumns(room.app, row, granted))
      .execute();
    expect(await room.use("search_issues", { query: "x" })).toMatchObject({ ok: true });
    expect(server.calls.map(({ path }) => path)).toEqual(["/token", "/api/v4/issues"]);
    good = "access-token-3";
    expect(await room.use("search_issues", { query: "x" })).toMatchObject({ ok: true });
    const asked = server.calls.slice(2).map(({ path }) => path);
    expect(asked).toEqual(["/api/v4/issues", "/token", "/api/v4/issues"]);
  });

  test("goes nowhere once the connection points elsewhere, or is gone", async () => {
    await using server = startStandIn(() => Response.json({}));
    await using other = startStandIn(() => Response.json({}));
    await using room = await roomAt("notes", server);
    const path = `/connections/${room.connection_id}`;
    const moved = { base_url: other.origin, credential: "another-token", headers: {} };
    expect((await room.owner.patch(path, moved)).status).toBe(200);
    const changed = {
      ok: false,
      text: "The connection to Notion was changed or deleted. Ask again.",
      files: [],
    };
    expect(await room.use("search", { query: "x" })).toEqual(changed);
    expect((await room.owner.delete(path)).status).toBe(204);
    expect(await room.use("search", { query: "x" })).toEqual(changed);
    expect([...server.calls, ...other.calls]).toEqual([]);
  });

  test("is not to be read in an answer that repeats it, nor are the connection's own headers", async () => {
    const secret = "gate-secret-0123456789";
    await using server = startStandIn(({ headers }) =>
      Response.json({
        number: 1,
        title: headers["authorization"],
        body: `x ${headers["x-gate"]} ${headers["x-team"]}`,
      }),
    );
    const headers = { "X-Gate": secret, "X-Team": "blue" };
    await using room = await integrationRoom("codehost-a", { base_url: server.origin, headers });
    const { text } = await room.use("read_issue", { repository: "a/b", number: 1 });
    expect(text).toStartWith("#1 Bearer [key]");
    expect(text).toEndWith("x [key] blue");
  });

  test("that cannot be opened any more is said so", async () => {
    await using server = startStandIn(() => Response.json({}));
    await using room = await roomAt("notes", server);
    const row = { ...(await rowOf(room)), sealed: new Uint8Array(60) };
    await room.app.db.updateTable("connections").set({ sealed: row.sealed }).execute();
    const [search] = integrationTools(room.app, row);
    const answer = await search?.call({ query: "x" }, new AbortController().signal);
    expect(answer).toMatchObject({ ok: false, files: [] });
    expect(answer?.text).toEndWith("Enter the credential of the connection again.");
    expect(server.calls).toEqual([]);
  });
});

test("GitHub's headers say when its limit ends, and its errors name the field", async () => {
  await using server = startStandIn(() => undefined);
  await using room = await roomAt("codehost-a", server);
  const reset = String(room.app.now() + 90);
  const limit = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset };
  server.first = () => Response.json({ message: "API rate limit exceeded" }, { status: 403, headers: limit });
  const args = { repository: "a/b", title: "x" };
  expect((await room.use("create_issue", args)).text).toContain("Try again in 90 seconds.");
  const errors = [{ resource: "Issue", field: "title", code: "missing_field" }, { message: "Too odd" }];
  server.first = () => Response.json({ message: "Validation Failed", errors }, { status: 422 });
  expect((await room.use("create_issue", args)).text).toEndWith(
    "It said: Validation Failed (title missing_field; Too odd)",
  );
});

test("a host that is not on the public internet is not reached", async () => {
  await using room = await integrationRoom("codehost-b", { base_url: "https://10.0.0.1" });
  const { ok, text } = await room.use("search_issues", { query: "x" });
  expect(ok).toBe(false);
  expect(text).toContain("The address 10.0.0.1 is not on the public internet");
});

async function roomAt(kind: string, server: StandIn, timeout_ms?: number) {
  const room = await integrationRoom(kind, {
    base_url: `${server.origin}/base`,
    ...(timeout_ms === undefined ? {} : { timeout_ms }),
  });
  return { ...room, server };
}

async function allTools(): Promise<Tool[]> {
  await using room = await integrationRoom("notes");
  const row = await rowOf(room);
  return KINDS.flatMap((kind) => integrationTools(room.app, { ...row, kind }));
}

function rowOf({ app }: IntegrationRoom) {
  return app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
}

interface Schema {
  type?: string;
  description?: string;
  enum?: string[];
  maxLength?: number;
  maximum?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}

/** Members without words about them, or without a bound. */
function unboundedIn(schema: Schema, name = ""): string[] {
  const bounds: Record<string, number | undefined> = {
    string: schema.enum === undefined ? schema.maxLength : 0,
    integer: schema.maximum,
    array: schema.maxItems,
  };
  const { type = "", description, properties = {}, items, anyOf = [] } = schema;
  const inner = Object.entries({ ...properties, ...(items === undefined ? {} : { [`${name}[]`]: items }) });
  return [
    ...(name === "" || description !== undefined ? [] : [`${name} is not described`]),
    ...(type in bounds && bounds[type] === undefined ? [`${name} has no bound`] : []),
    ...inner.flatMap(([key, one]) => unboundedIn(one, key)),
    ...anyOf.flatMap((one) => unboundedIn({ description: "", ...one }, name)),
  ];
}

function endless(start: string): ReadableStream {
  return new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(start || " ")),
  });
}

function flood(): ReadableStream {
  const piece = new Uint8Array(262_144).fill(32);
  return new ReadableStream({ pull: (controller) => controller.enqueue(piece) });
}
