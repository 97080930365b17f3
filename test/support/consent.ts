import { startSession } from "../../src/resources/accounts/sessions.ts";
import type { Answer, Caller, TestApp } from "./app.ts";

/** The session cookie of a browser of its own. */
export async function sessionOf(t: TestApp, { user }: Pick<Caller, "user">): Promise<string> {
  const about = { user_id: user.id, by_code: true, client: "", user_agent: "" };
  return `service_session=${await t.app.write((tx) => startSession(t.app, tx, about))}`;
}

/** Comes back from a consent page in a browser of the account, and confirms if it is asked to. */
export async function comeBack(t: TestApp, caller: Pick<Caller, "user">, back: string): Promise<Answer> {
  const cookie = await sessionOf(t, caller);
  const page = await t.request(back, { headers: { cookie } });
  return isQuestion(page) ? press(t, page, { cookie }) : page;
}

/** Presses the button of a page that asks. */
export function press(t: TestApp, page: Answer, headers: Record<string, string>): Promise<Answer> {
  const { action, fields } = formOf(page);
  return t.request(action, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(fields).toString(),
  });
}

export function isQuestion(page: Answer): boolean {
  return page.status === 200 && String(page.body).includes("<form");
}

/** Where a page that asks sends what. */
export function formOf({ body }: Answer): { action: string; fields: Record<string, string> } {
  const page = String(body);
  const action = new URL(plain(/<form method="post" action="([^"]+)"/.exec(page)?.[1] ?? ""));
  const inputs = page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g);
  const fields = [...inputs].map(([, name = "", value = ""]) => [name, plain(value)]);
  return { action: action.pathname, fields: Object.fromEntries(fields) as Record<string, string> };
}

function plain(text: string): string {
  const named: Record<string, string> = { quot: '"', "#x27": "'", lt: "<", gt: ">", amp: "&" };
  return text.replaceAll(/&(quot|#x27|lt|gt|amp);/g, (_all, name: string) => named[name] ?? "");
}
