import { expect } from "bun:test";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import type { Dashboard } from "./house.ts";

/** Another account than the owner's, signed in: gives the cookie for a visit that is signed out. */
export async function signUp(at: Dashboard, account: { email: string; password: string }) {
  const post = (path: string, body: object) =>
    fetch(`${at.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const registered = await post("/auth/register", account);
  const { registration_token } = (await registered.json()) as { registration_token: string };
  const code = await at.said(/code=(\d{6})/);
  const verified = await post("/auth/verify", { email: account.email, code, registration_token });
  expect(verified.status).toBe(200);
  const [name = "", value = ""] = (verified.headers.get("set-cookie")?.split(";")[0] ?? "").split("=");
  return { name, value, url: at.url };
}

/** Every browser signed in an hour ago, until what is given back is disposed of. */
export function setBackSignIns(at: Dashboard): Disposable {
  const change = (sql: string): void => {
    using stack = new DisposableStack();
    const database = stack.adopt(new Sqlite(join(at.dir, "data/mailwright.db")), (opened) => opened.close());
    database.exec(sql);
  };
  change("update sessions set created = created - 3600, code_login_at = code_login_at - 3600");
  const forward = "update sessions set created = created + 3600, code_login_at = code_login_at + 3600";
  return { [Symbol.dispose]: () => change(`${forward} where created < unixepoch() - 3000`) };
}
