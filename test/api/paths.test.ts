import { expect, test } from "bun:test";
import { createHttp } from "../../src/api.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { LISTEN, openDoor } from "./door.ts";

/** Each path of the route list with what it offers; ids stand for things that nobody has. */
function pathsOf(t: TestApp): { path: string; methods: string[] }[] {
  const { routes } = createHttp(t.app, { ready: async () => ({ database: "ok" }) });
  const byPath = Map.groupBy(
    routes.filter(({ path }) => !path.includes("*")),
    (route) => route.path.replaceAll(/:\w+/g, UNKNOWN),
  );
  return [...byPath].map(([path, group]) => ({ path, methods: group.map(({ method }) => method) }));
}

const UNKNOWN = Bun.randomUUIDv7();
/** Its answer goes on for as long as somebody listens. */
const ENDLESS = "/messages/stream";

test("every path answers alike with and without a slash at its end", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (const { path, methods } of pathsOf(t)) {
    if (path === ENDLESS) continue;
    for (const method of methods) {
      // Whatever writes is refused for its body, the same way for both.
      const init: RequestInit = {
        method,
        redirect: "manual",
        headers: { "x-api-key": ada.key, "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: "[" }),
      };
      const [plain, slashed] = [await door.request(path, init), await door.request(`${path}/`, init)];
      expect([method, path, slashed.status]).toEqual([method, path, plain.status]);
      expect(slashed.headers.get("content-type")).toBe(plain.headers.get("content-type"));
      // An export tells of the one before it, and the overview of the memory in use.
      if (path === "/auth/export" || path === "/admin/overview") continue;
      const same = (body: unknown) => JSON.stringify(body).replaceAll(/req_[0-9a-f]+/g, "");
      expect([method, path, same(slashed.body)]).toEqual([method, path, same(plain.body)]);
    }
  }
});

test("every path refuses a method that it does not have, and names those it has", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (const { path, methods } of pathsOf(t)) {
    for (const method of ["OPTIONS", "PUT", "GET", "POST", "PATCH", "DELETE"]) {
      if (methods.includes(method) || overlaps(t, path, method)) continue;
      const answer = await door.request(path, { method, headers: { "x-api-key": ada.key } });
      expect([method, path, answer.status, answer.body.code]).toEqual([
        method,
        path,
        405,
        "method_not_allowed",
      ]);
      const allow = answer.headers.get("allow")?.split(", ") ?? [];
      expect([path, allow]).toEqual([path, expect.arrayContaining(methods)]);
    }
  }
});

test("HEAD is answered as GET is, without the body, and refused where there is no GET", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (const { path, methods } of pathsOf(t)) {
    const headers = { "x-api-key": ada.key };
    const head = await door.request(path, { method: "HEAD", headers });
    expect([path, head.body]).toEqual([path, ""]);
    if (!methods.includes("GET") && !overlaps(t, path, "GET")) {
      expect([path, head.status, head.headers.get("allow")]).toEqual([path, 405, methods.join(", ")]);
      continue;
    }
    if (path === ENDLESS) continue;
    const get = await door.request(path, { headers });
    expect([path, head.status]).toEqual([path, get.status]);
    expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
  }
});

/** `/contexts/upload` is also a `/contexts/{context_id}`. */
function overlaps(t: TestApp, path: string, method: string): boolean {
  const { routes } = createHttp(t.app, { ready: async () => ({}) });
  return routes.some(
    (route) =>
      route.method === method && new RegExp(`^${route.path.replaceAll(/:\w+/g, "[^/]+")}$`).test(path),
  );
}
