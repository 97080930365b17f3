import type { Answer, TestApp } from "../support/app.ts";

/** Keeps cookies as a browser does, and calls from an address of its own. */
export interface Browser {
  cookies: Map<string, string>;
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

/** `client` is the address it calls from; "" for one that is not known. */
export function openBrowser(t: TestApp, client = "192.0.2.7"): Browser {
  const cookies = new Map<string, string>();
  const send: Browser["send"] = async (method, path, body, headers = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await t.request(path, {
      method,
      headers: {
        ...(client === "" ? {} : { "x-forwarded-for": client }),
        ...(cookie === "" ? {} : { cookie }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    for (const line of answer.headers.getSetCookie()) keep(cookies, line);
    return answer;
  };
  return {
    cookies,
    send,
    get: (path, headers) => send("GET", path, undefined, headers),
    post: (path, body, headers) => send("POST", path, body, headers),
  };
}

/** Signs a browser in with a code, which also makes the account if it is new. */
export async function signIn(t: TestApp, email: string, browser = openBrowser(t)): Promise<Browser> {
  const answer = await browser.post("/auth/verify", { email, code: await freshCode(t, email) });
  if (answer.status !== 200) throw new Error(`${email} was not signed in: ${JSON.stringify(answer.body)}`);
  return browser;
}

/** Has a code mailed and reads it; the clock goes on first, past the pause between two codes. */
export async function freshCode(t: TestApp, email: string): Promise<string> {
  t.clock.advance("12m");
  await openBrowser(t, "192.0.2.99").post("/auth/request-code", { email });
  await t.drain();
  const code = await newestCode(t, email);
  if (code === undefined) throw new Error(`no code was mailed to ${email}`);
  return code;
}

/** Returns the code of the newest mail to an address that has one. */
export async function newestCode(t: TestApp, email: string): Promise<string | undefined> {
  const codes = (await lettersTo(t, email)).map((raw) => /^\d{6}(?=\r?$)/m.exec(raw)?.[0]);
  return codes.findLast((code) => code !== undefined);
}

/** The subjects of all mails to an address, oldest first. */
export async function subjectsTo(t: TestApp, email: string): Promise<string[]> {
  return (await lettersTo(t, email)).map((raw) => /^Subject: (.*)$/m.exec(raw)?.[1]?.trim() ?? "");
}

export async function lettersTo(t: TestApp, email: string): Promise<string[]> {
  const rows = await t.app.db
    .selectFrom("outgoing_mails")
    .select("raw")
    .where("envelope_to", "=", email)
    .orderBy("id")
    .execute();
  return rows.map(({ raw }) => Buffer.from(raw ?? []).toString());
}

function keep(cookies: Map<string, string>, line: string): void {
  const [pair = "", ...attributes] = line.split(/; */);
  const [name = "", value = ""] = pair.split("=", 2);
  if (attributes.some((attribute) => /^max-age=0$/i.test(attribute))) cookies.delete(name);
  else cookies.set(name, value);
}
