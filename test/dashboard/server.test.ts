import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER, TASK_LOOKS, type Visit } from "./house.ts";
import { setBackSignIns } from "./sign-up.ts";

/** Every tab, one after the other. */
const LOOK_MS = 60_000;
const BOB = "bob@example.org";

describe.skipIf(!hasChromium)("the server's page", () => {
  let at: Dashboard;

  beforeAll(async () => {
    // Nobody listens there: the check-up must not ask the world.
    at = await dashboard({ env: { MAILWRIGHT_DNS__SERVERS: "127.0.0.1:9" } });
    const { id } = await at.api<{ id: string }>("POST", "/connections", { kind: "demo" });
    await at.api("POST", "/inboxes", { label: "Notes", default_connection_id: id });
    await at.api("POST", "/v1/messages", { instruction: "Summarise this", content: "Bring bread." });
    await at.api("POST", "/auth/request-code", { email: BOB });
  }, 120_000);

  afterAll(() => at?.[Symbol.asyncDispose]());

  async function choose({ page }: Visit, tab: string): Promise<void> {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tabpanel", { name: tab }).waitFor();
  }

  test.each(TASK_LOOKS)(
    "has all that who runs it looks for, at %s",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      await visit.open("Server");
      await seesTheFigures(visit);
      await hasItLookAtItself(visit);
      await makesABackup(visit);
      await movesAnAccount(visit);
      await holdsAndDropsWork(visit);
      await readsWhatIsKeptHere(visit);
    },
    LOOK_MS,
  );

  async function seesTheFigures(visit: Visit): Promise<void> {
    const { page } = visit;
    for (const words of [
      "Work that is due",
      "Mail in today",
      "Mail kept here today",
      "Time to an answer",
      "Tokens today",
      "Memory in use",
      "Free on the disk",
    ])
      await page.getByText(words, { exact: true }).waitFor();
    await page.getByRole("img", { name: /^Messages in the last 30 days: [1-9]/ }).waitFor();
    await page.getByText("nothing leaves this machine").waitFor();
    await visit.look("server-glance");
  }

  async function hasItLookAtItself(visit: Visit): Promise<void> {
    const { page } = visit;
    await choose(visit, "Check-up");
    await page.getByRole("button", { name: /^Look (now|again)$/ }).click();
    await page.getByRole("progressbar", { name: /of \d+ checks/ }).waitFor();
    await page.getByRole("button", { name: "Look again" }).waitFor();
    await page.getByText(/things? (is|are) broken/).waitFor();
    await page.getByRole("heading", { name: "outgoing mail" }).waitFor();
    await page.getByText('What to do: Set it to "relay" or "direct".').waitFor();
    await page.getByText(/checks? (is|are) fine/).click();
    await page.getByText("The database is sound.").waitFor();
    await visit.look("server-check-up");
  }

  async function makesABackup(visit: Visit): Promise<void> {
    const { page } = visit;
    const before = await archives();
    await choose(visit, "Backups");
    await page.getByRole("button", { name: "Back up now" }).click();
    await page.getByText(/^The backup is made: /).waitFor();
    const made = (await archives()).find((name) => !before.includes(name));
    await page.getByText(made ?? "a new archive").waitFor();
    await page.getByText("They lie on the server in").waitFor();
    await visit.look("server-backups");
  }

  async function movesAnAccount(visit: Visit): Promise<void> {
    const { page } = visit;
    await choose(visit, "Accounts");
    const plan = page.getByLabel(`Plan of ${BOB}`);
    await plan.selectOption("Free");
    await page.getByRole("button", { name: "Keep it" }).click();
    expect(await plan.inputValue()).toBe("team");
    await visit.look("server-accounts");
    await plan.selectOption("Free");
    await page.getByRole("button", { name: "Move to Free" }).click();
    await page.getByText(`${BOB} has the plan Free now.`).waitFor();
    expect(await plan.inputValue()).toBe("free");
    await page.getByRole("button", { name: "Undo" }).first().click();
    await page.getByText(`${BOB} has the plan Team now.`).waitFor();
    expect(await plan.inputValue()).toBe("team");
  }

  test(
    "makes an account, sends its owner a code and takes a password away",
    async () => {
      await using visit = await at.visit({ refusals: [409, 422] });
      const { page } = visit;
      const email = "cleo@example.org";
      await visit.open("Server");
      await choose(visit, "Accounts");
      await page.getByRole("button", { name: "Make an account" }).click();
      const dialog = page.getByRole("dialog", { name: "Make an account" });
      await dialog.getByLabel("Mail address").fill(OWNER.email);
      await dialog.getByRole("button", { name: "Make it and invite" }).click();
      await dialog.getByText(`There is already an account for ${OWNER.email}.`).waitFor();
      await visit.look("server-invite");
      await dialog.getByLabel("Mail address").fill(email);
      await dialog.getByRole("button", { name: "Make it and invite" }).click();
      await page
        .getByText(`${email} has an account, and the invitation is kept here, under Outgoing mail.`)
        .waitFor();
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("button", { name: `Send ${email} a code` }).click();
      await page.getByText(`A code for ${email} is kept here, under Outgoing mail.`).waitFor();
      expect(await page.getByRole("button", { name: `Send ${OWNER.email} a code` }).count()).toBe(0);
      const code = await at.said(new RegExp(`email=${email} code=(\\d{6})`));
      const verified = await fetch(`${at.url}/auth/verify`, json({ email, code }));
      const cookie = verified.headers.get("set-cookie")?.split(";")[0] ?? "";
      const set = await fetch(`${at.url}/auth/set-password`, json({ password: "seven small boats" }, cookie));
      expect(set.status).toBe(200);
      await page.reload();
      await page.getByRole("button", { name: `Reset the password of ${email}` }).click();
      await visit.look("server-reset");
      await page.getByRole("button", { name: "Reset the password", exact: true }).click();
      await page.getByText(`${email} signs in with a code now, and has been told.`).waitFor();
      await page
        .getByRole("button", { name: `Reset the password of ${email}` })
        .waitFor({ state: "detached" });
      expect((await fetch(`${at.url}/auth/me`, { headers: { cookie } })).status).toBe(401);
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "who signed in long ago gives the password where the account is made, and what was typed stays (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look, refusals: [403] });
      const { page } = visit;
      const email = `dora-${name}@example.org`;
      await visit.open("Server");
      await choose(visit, "Accounts");
      using _long_ago = setBackSignIns(at);
      await page.getByRole("button", { name: "Make an account" }).click();
      const dialog = page.getByRole("dialog", { name: "Make an account" });
      await dialog.getByLabel("Mail address").fill(email);
      await dialog.getByRole("button", { name: "Make it and invite" }).click();
      await dialog.getByText("Sign in again here").waitFor();
      await visit.look("server-invite-again");
      await dialog.getByLabel("Your password").fill(OWNER.password);
      await dialog.getByRole("button", { name: "Sign in and go on" }).click();
      await page
        .getByText(`${email} has an account, and the invitation is kept here, under Outgoing mail.`)
        .waitFor();
    },
    LOOK_MS,
  );

  function json(body: object, cookie = ""): RequestInit {
    const headers = { "content-type": "application/json", cookie };
    return { method: "POST", headers, body: JSON.stringify(body) };
  }

  async function holdsAndDropsWork(visit: Visit): Promise<void> {
    const { page } = visit;
    await choose(visit, "Waiting work");
    await page.getByRole("button", { name: "Hold the work" }).click();
    await page.getByText(/^Held: .*messages to work on/).waitFor();
    await at.api("POST", "/v1/messages", { instruction: "Wait", async: true });
    await at.api("POST", "/v1/messages", { instruction: "Go away", async: true });
    await page.getByLabel("State").selectOption("Held");
    const work = page.getByRole("listitem").filter({ hasText: "work on a call over HTTP" });
    await work.nth(1).waitFor();
    await visit.look("server-queue");
    await work
      .nth(1)
      .getByRole("button", { name: /^Drop: work on a call/ })
      .click();
    await page.getByText("The message ends as failed, and its credit is given back.").waitFor();
    await page.getByRole("button", { name: "Drop it" }).click();
    await work.nth(1).waitFor({ state: "detached" });
    expect(await work.count()).toBe(1);
    await page.getByRole("button", { name: "Let it go on" }).click();
    await page.getByText("Nothing waits").waitFor();
  }

  async function readsWhatIsKeptHere(visit: Visit): Promise<void> {
    const { page } = visit;
    await choose(visit, "Outgoing mail");
    const code = page.getByRole("button", { name: `Your Mailwright code To ${BOB}` });
    await code.waitFor();
    expect(await code.innerText()).toContain("Kept here");
    expect(await page.getByRole("tabpanel").getByRole("list").innerText()).not.toMatch(/\bsent\b/i);
    await visit.look("server-mail");
    await code.click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("It went nowhere").waitFor();
    const words = dialog.getByRole("region", { name: "Its words" });
    await words.filter({ hasText: /\d{6}\s+This is your Mailwright code\./ }).waitFor();
    // What the mail has broken at its width is one line on the page.
    expect(await words.innerText()).toMatch(/^This is your Mailwright code\..* A newer code replaces it\.$/m);
    await dialog.getByText("DKIM-Signature").waitFor({ state: "hidden" });
    await visit.look("server-mail-text");
  }

  test("remembers the tab in its address", async () => {
    await using visit = await at.visit();
    await visit.open("Server");
    await choose(visit, "Backups");
    await visit.page.reload();
    await visit.page.getByRole("tab", { name: "Backups", selected: true }).waitFor();
  });

  test("shows why the backups cannot be listed and what mends it, and lists them once that is done", async () => {
    const dir = join(at.dir, "data/backups");
    await mkdir(dir, { recursive: true });
    await rename(dir, `${dir}-away`);
    await writeFile(dir, "a file in the place of the folder");
    await using visit = await at.visit({ refusals: [503] });
    const { page } = visit;
    await visit.open("Server");
    await choose(visit, "Backups");
    await page.getByText(/cannot be looked at: ENOTDIR/).waitFor();
    await page.getByText(/or name another one with backup\.dir/).waitFor();
    await rm(dir);
    await rename(`${dir}-away`, dir);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Back up now" }).waitFor();
  });

  async function archives(): Promise<string[]> {
    const { items } = await at.api<{ items: { name: string }[] }>("GET", "/admin/backups");
    return items.map(({ name }) => name);
  }
});
