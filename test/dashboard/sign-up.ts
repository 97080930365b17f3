import { expect } from "bun:test";
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
