import { startHttp } from "../../src/api.ts";
import type { Answer, TestApp } from "../support/app.ts";

interface OpenDoor extends AsyncDisposable {
  url: string;
  host: string;
  port: number;
  request(path: string, init?: RequestInit): Promise<Answer>;
}

/** The same server behind a real socket; give `testApp` the configuration `LISTEN`. */
export async function openDoor(t: TestApp): Promise<OpenDoor> {
  const door = await startHttp(t.app, { ready: async () => ({ database: "ok" }) });
  const { hostname: host, port } = new URL(door.url);
  return {
    url: door.url,
    host,
    port: Number(port),
    async request(path, init = {}) {
      const response = await fetch(`${door.url}${path}`, init);
      const text = await response.text();
      const isJson = text !== "" && (response.headers.get("content-type")?.includes("json") ?? false);
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    },
    [Symbol.asyncDispose]: () => door[Symbol.asyncDispose](),
  };
}

export const LISTEN = { listen: "127.0.0.1:0" };
