import { createApiKey } from "../resources/accounts/api-keys.ts";
import { createVerifiedUser } from "../resources/accounts/accounts.ts";
import type { App } from "../app.ts";
import type { OutgoingMailRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import type { DkimKeys } from "../mail/writing/dkim.ts";
import { serviceKeys } from "../mail/writing/dkim-keys.ts";
import { createSender } from "../mail/sending/send.ts";
import type { ActivityView } from "../resources/messages/view.ts";
import type { RunView } from "../resources/messages/view.ts";
import type { Server } from "../serve.ts";
import { demoMail, INSTRUCTION, REPORT } from "./demo-mail.ts";
import { acceptedSignatures } from "./demo-signatures.ts";

/** A domain reserved for tests (RFC 6761), to which no mail is ever sent by mistake. */
export const DEMO_DOMAIN = "mailwright.test";
const OWNER = "you@example.com";
const RUN_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 250;

/** The demo's account and inbox, with the reply that came. */
export interface Desk {
  address: string;
  owner: string;
  key: string;
  /** The text of the reply. */
  reply: string;
}

/**
 * Sends a mail and a call through the running server, and checks and reports each step; throws at the first that fails.
 */
export async function walkThrough(
  server: Server,
  tell: (label: string, text: string) => void,
): Promise<Desk> {
  const { app, http, smtp } = server;
  tell("started", `HTTP on ${http}, SMTP on ${smtp}, everything in a temporary folder`);
  const { key, address } = await furnish(server);
  tell("inbox", `${address}, of the account ${OWNER}, answered by the built-in demo model (offline, no AI)`);

  const answer = await deliver(server, address);
  tell(
    "accepted",
    `a mail with ${REPORT.filename} came in over SMTP and was stored safely before "${answer}"`,
  );
  const message = await finished(server, key);
  tell("authenticated", authenticated(message));
  tell("routed", routed(message));
  const mail = await replyOf(app, message);
  tell(
    "replied",
    `to ${mail.envelope_to}; outgoing mail stays in the capture box here, so nothing left your machine`,
  );
  const raw = Buffer.from(mail.raw ?? []);
  const keys = await serviceKeys(app);
  tell("signed", signed(await acceptedSignatures(raw, DEMO_DOMAIN, keys), keys));
  tell("over HTTP", await sameOverHttp(server, key));
  return { key, address, owner: OWNER, reply: await readable(raw) };
}

/** Yields the replies to further mails, until `stop` is aborted. */
export async function* repliesTo(app: App, stop: AbortSignal): AsyncGenerator<string> {
  let last = (await repliesAfter(app, "")).at(-1)?.id ?? "";
  while (!stop.aborted) {
    for (const { id, raw } of await repliesAfter(app, last)) {
      last = id;
      yield await readable(Buffer.from(raw ?? []));
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** Creates an account with a key, a connection to the demo model, and an inbox that uses it. */
async function furnish(server: Server): Promise<{ key: string; address: string }> {
  const user = await createVerifiedUser(server.app, { email: OWNER });
  const { key } = await createApiKey(server.app, { email: user.email });
  const connection = await call<{ id: string }>(server, key, {
    path: "/connections",
    body: { kind: "demo" },
  });
  const { address } = await call<{ address: string }>(server, key, {
    path: "/inboxes",
    body: { label: "Demo", default_connection_id: connection.id },
  });
  return { key, address };
}

/** Sends the mail over a real SMTP connection; returns the server's reply. */
async function deliver({ app, smtp }: Server, address: string): Promise<string> {
  await using sender = createSender({
    mode: "relay",
    relay_url: `smtp://${smtp}`,
    hostname: "laptop.example.com",
    resolver: app.resolver,
    egress_allow: [],
  });
  const raw = demoMail(OWNER, address, new Date(app.nowMs()));
  const outcome = await sender.send({ raw, envelope_from: OWNER, envelope_to: address });
  check(outcome.status === "sent", `The mail was not accepted: ${outcome.response}`);
  return outcome.response;
}

async function finished(server: Server, key: string): Promise<ActivityView> {
  const deadline = Date.now() + RUN_WITHIN_MS;
  for (;;) {
    const { items } = await call<{ items: ActivityView[] }>(server, key, { path: "/messages" });
    const [message] = items;
    check(message !== undefined, "The accepted mail is not in the activity log.");
    if (message.status !== "received") return message;
    check(Date.now() < deadline, `The run did not end within ${RUN_WITHIN_MS / 1_000} seconds.`);
    await server.app.finished.wait(message.message_id, LOOK_EVERY_MS);
  }
}

function authenticated({ auth, sender }: ActivityView): string {
  check(auth?.["trusted_network"] === true, "The mail was not taken as authenticated.");
  return `${sender} is believed, because the demo trusts this machine; on the open net SPF, DKIM and DMARC decide`;
}

function routed({ status, error, attachments, model, ...message }: ActivityView): string {
  check(status === "done", `The run ended as ${status}: ${error ?? "no reason was given"}.`);
  const names = attachments.map(({ filename }) => filename);
  check(names.includes(REPORT.filename), "The attachment was lost on the way.");
  const credits = `${message.credits_charged} credit${message.credits_charged === 1 ? "" : "s"}`;
  return `the text and ${names.join(", ")} went to the model "${model}": ${credits}, ${message.duration_ms} ms from arrival to end`;
}

async function replyOf(app: App, { message_id, reply_status }: ActivityView): Promise<OutgoingMailRow> {
  const mail = await app.db
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("message_id", "=", message_id)
    .executeTakeFirst();
  check(mail !== undefined && reply_status === "sent", `There is no reply; its state is "${reply_status}".`);
  check(mail.envelope_to === OWNER, `The reply went to ${mail.envelope_to} instead of ${OWNER}.`);
  return mail;
}

function signed(accepted: string[], keys: DkimKeys): string {
  const missing = keys.map(({ algorithm }) => algorithm).filter((name) => !accepted.includes(name));
  check(missing.length === 0, `A receiver would not accept the DKIM signature by ${missing.join(" and ")}.`);
  return `DKIM signatures by ${accepted.join(" and ")} checked as a receiver would: both pass`;
}

async function sameOverHttp(server: Server, key: string): Promise<string> {
  const { text, ...file } = REPORT;
  const attachments = [{ ...file, data: Buffer.from(text).toString("base64") }];
  const view = await call<RunView>(server, key, {
    path: "/v1/messages",
    body: { instruction: INSTRUCTION, attachments },
  });
  check(view.status === "done", `The call over HTTP ended as ${view.status}: ${view.error ?? ""}`);
  check(view.result.includes(REPORT.filename), "The answer over HTTP does not name the attachment.");
  return `POST /v1/messages with the same question and file: "${view.status}", ${view.credits.charged} credit`;
}

function repliesAfter(app: App, id: string) {
  return app.db
    .selectFrom("outgoing_mails")
    .where("outgoing_mails.message_id", "is not", null)
    .select(["outgoing_mails.id", "outgoing_mails.raw"])
    .where("outgoing_mails.id", ">", id)
    .orderBy("outgoing_mails.id")
    .execute();
}

/** Returns the plain text of a mail. */
async function readable(raw: Buffer): Promise<string> {
  // Loaded here, because the mail reader would slow the start of every command.
  const { partsOf, readStructure } = await import("../mail/reading/parse-structure.ts");
  const { headers, root } = await readStructure(raw);
  const part = [...partsOf(root)].find(({ contentType }) => contentType === "text/plain");
  const fields = ["From", "To", "Subject"].map((name) => `${name}: ${headers.get(name.toLowerCase()) ?? ""}`);
  return [...fields, "", (part?.textContent ?? "").trimEnd()].join("\n");
}

async function call<T>(
  { http }: Server,
  key: string,
  { path, body }: { path: string; body?: object },
): Promise<T> {
  const answer = await fetch(http + path, {
    method: body ? "POST" : "GET",
    headers: { "x-api-key": key, "content-type": "application/json", "mailwright-strict": "1" },
    signal: AbortSignal.timeout(RUN_WITHIN_MS),
    // Ignores a proxy from the environment, which cannot reach this server.
    proxy: false,
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  check(answer.ok, `${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text) as T;
}

function check(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new AppError("internal", `The demo failed. ${sentence}`);
}
