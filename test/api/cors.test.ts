import { describe, expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { LISTEN, openDoor } from "./door.ts";

const HERE = "https://app.example.org";
const ALLOWED = { server: { ...LISTEN, cors_origins: [HERE, "http://localhost:5173"] } };
const ASKING = { "access-control-request-method": "POST", "access-control-request-headers": "x-api-key" };

/** The names of all headers that speak to browsers about other origins. */
function corsNames(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-"));
}

describe("without server.cors_origins", () => {
  test("no answer says anything about other origins, and a preflight is refused as any unknown method", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await openDoor(t);
    for (const path of ["/inboxes", "/openapi.json", "/livez", "/nowhere"]) {
      for (const method of ["GET", "OPTIONS"]) {
        const answer = await door.request(path, { method, headers: { origin: HERE, ...ASKING } });
        expect([path, method, corsNames(answer.headers)]).toEqual([path, method, []]);
        expect(answer.headers.has("vary")).toBe(path === "/openapi.json" && method === "GET");
        if (method === "OPTIONS") expect(answer.status).toBe(path === "/nowhere" ? 404 : 405);
      }
    }
  });
});

describe("with server.cors_origins", () => {
  test("a listed origin may read answers and errors alike, never with credentials", async () => {
    await using t = await testApp(ALLOWED);
    await using door = await openDoor(t);
    const ada = await t.as("ada@example.com");
    for (const origin of ALLOWED.server.cors_origins) {
      for (const [path, status] of [
        ["/inboxes", 200],
        ["/messages?limit=0", 422],
        ["/nowhere", 404],
        ["/docs", 200],
        ["/openapi.json", 200],
      ] as const) {
        const { headers, ...answer } = await door.request(path, {
          headers: { origin, "x-api-key": ada.key },
        });
        expect([path, answer.status]).toEqual([path, status]);
        expect(headers.get("access-control-allow-origin")).toBe(origin);
        expect(headers.get("access-control-expose-headers")).toContain("Retry-After");
        expect(headers.has("access-control-allow-credentials")).toBe(false);
        expect(headers.get("vary")).toStartWith("Origin");
      }
    }
  });

  test("an answer to anybody else says only that it depends on the origin", async () => {
    await using t = await testApp(ALLOWED);
    await using door = await openDoor(t);
    const others = ["https://evil.example", `${HERE}.evil.example`, "http://app.example.org", `${HERE}:8443`];
    for (const origin of [...others, "null", HERE.toUpperCase(), undefined]) {
      const headers: Record<string, string> = origin === undefined ? {} : { origin };
      const answer = await door.request("/livez", { headers });
      expect([origin, answer.status, corsNames(answer.headers)]).toEqual([origin, 200, []]);
      expect(answer.headers.get("vary")).toBe("Origin");
      const preflight = await door.request("/inboxes", {
        method: "OPTIONS",
        headers: { ...headers, ...ASKING },
      });
      expect([origin, preflight.status, corsNames(preflight.headers)]).toEqual([origin, 405, []]);
    }
  });

  test("a preflight of a listed origin names the methods of the path and the headers that calls need", async () => {
    await using t = await testApp(ALLOWED);
    await using door = await openDoor(t);
    for (const [path, methods] of [
      ["/inboxes", "GET, POST"],
      ["/inboxes/", "GET, POST"],
      ["/v1/messages", "POST"],
      [`/inboxes/${Bun.randomUUIDv7()}`, "GET, PATCH, DELETE"],
    ] as const) {
      const answer = await door.request(path, { method: "OPTIONS", headers: { origin: HERE, ...ASKING } });
      expect([path, answer.status, answer.body]).toEqual([path, 204, ""]);
      const { headers } = answer;
      expect(headers.get("access-control-allow-methods")).toBe(methods);
      const allowed = headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
      expect(allowed).toEqual(
        expect.arrayContaining(["x-api-key", "content-type", "idempotency-key", "prefer"]),
      );
      expect(Number(headers.get("access-control-max-age"))).toBeGreaterThan(0);
      expect(headers.has("access-control-allow-credentials")).toBe(false);
      expect(headers.has("x-request-id")).toBe(true);
    }
  });

  test("a preflight to nowhere is 404, and an OPTIONS that is no preflight is 405", async () => {
    await using t = await testApp(ALLOWED);
    await using door = await openDoor(t);
    const nowhere = await door.request("/nowhere", {
      method: "OPTIONS",
      headers: { origin: HERE, ...ASKING },
    });
    expect([nowhere.status, nowhere.body.code]).toEqual([404, "not_found"]);
    const plain = await door.request("/inboxes", { method: "OPTIONS", headers: { origin: HERE } });
    expect([plain.status, plain.headers.get("allow")]).toEqual([405, "GET, POST"]);
  });

  test("a key from a listed origin is good for writing too", async () => {
    await using t = await testApp(ALLOWED);
    await using door = await openDoor(t);
    const ada = await t.as("ada@example.com");
    const made = await door.request("/inboxes", {
      method: "POST",
      headers: {
        origin: HERE,
        "sec-fetch-site": "cross-site",
        "x-api-key": ada.key,
        "content-type": "application/json",
      },
      body: "{}",
    });
    expect([made.status, made.headers.get("access-control-allow-origin")]).toEqual([201, HERE]);
  });
});
