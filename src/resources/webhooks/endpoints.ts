import { storedJson } from "../../lib/stored-json.ts";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import { refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import type { EventType, UserRow, WebhookEndpointRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { refuseBadAddress } from "./address.ts";
import { EVENT_TYPES } from "./events.ts";
import { failAllPending, failPending } from "./pending.ts";
import type { EndpointSettings, NewEndpoint } from "./body-shapes.ts";
import { mintSecret, replaceSecret, sealSecrets, secretIfPossible } from "./secrets.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** How long the former secret signs as well, after a new one was made. */
const OVERLAP_SECONDS = DAY_SECONDS;

export type EndpointView = ReturnType<typeof viewEndpoint>;

export async function listEndpoints(db: Db, user: UserRow): Promise<EndpointView[]> {
  return (await endpointsOf(db, user)).map(viewEndpoint);
}

export async function readEndpoint(db: Db, user: UserRow, id: string): Promise<EndpointView> {
  return viewEndpoint(await ownEndpoint(db, user, id));
}

/** Makes an endpoint. Besides the two calls that ask for the secret, only this answer has it. */
export async function createEndpoint(
  app: App,
  caller: Caller,
  input: NewEndpoint,
): Promise<EndpointView & { secret: string }> {
  const { user } = caller;
  await refuseAddress(app, user, input.url);
  const id = app.newId();
  const secret = mintSecret();
  const row: WebhookEndpointRow = {
    id,
    user_id: user.id,
    url: input.url,
    event_types: JSON.stringify(withoutStar(input.event_types)),
    enabled: input.enabled === false ? 0 : 1,
    sealed: sealSecrets(app, id, { secret, old_secret: null }),
    old_secret_until: null,
    consecutive_failures: 0,
    disabled_reason: null,
    description: input.description ?? null,
    deleted_at: null,
    created: app.now(),
    updated: app.now(),
  };
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "webhook_created");
    const { length } = await endpointsOf(tx, user);
    refuseOverCap(app, user, "webhooks", { wanted: length + 1 });
    await tx.insertInto("webhook_endpoints").values(row).execute();
    return { ...viewEndpoint(row), secret };
  });
}

async function refuseAddress(app: App, user: UserRow, url: string): Promise<void> {
  using _trip = await beginTrip(user);
  await refuseBadAddress(app, url);
}

/** RFC 7396: absent members stay as they are. */
export async function patchEndpoint(
  app: App,
  caller: Caller,
  { id, settings }: { id: string; settings: EndpointSettings },
): Promise<EndpointView> {
  const { user } = caller;
  await ownEndpoint(app.db, user, id);
  if (settings.url !== undefined) await refuseAddress(app, user, settings.url);
  const { view, left } = await app.write(async (tx) => {
    const row = await ownEndpoint(tx, user, id);
    if (settings.enabled === true && row.enabled === 0) await refuseOneMore(app, tx, user);
    const changes = columnsOf(settings);
    if (Object.keys(changes).length === 0) return { view: viewEndpoint(row), left: false };
    await noteChange(app, tx, caller, "webhook_changed");
    const changed = { ...row, ...changes, updated: app.now() };
    await tx.updateTable("webhook_endpoints").set(changed).where("id", "=", row.id).execute();
    const pending = changed.enabled === 0 ? await failPending(app, tx, row) : { left: false };
    return { view: viewEndpoint(changed), ...pending };
  });
  if (left) await failAllPending(app, view);
  return view;
}

export async function revealSecret(app: App, caller: Caller, id: string): Promise<{ secret: string }> {
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "webhook_secret_shown");
    return { secret: readableSecret(app, await ownEndpoint(tx, caller.user, id)) };
  });
}

/** Throws `conflict` when the secret cannot be read any more. */
export function readableSecret(app: App, endpoint: WebhookEndpointRow): string {
  const secret = secretIfPossible(app, endpoint);
  if (secret !== null) return secret;
  throw new AppError("conflict", "The secret was sealed under another master key and cannot be read.", {
    fix: "Make a new one with rotate-secret, and give it to the receiver.",
  });
}

/**
 * Makes a new secret. Each former one signs as well for a day of its own, so that no delivery fails while the receiver is
 * told the new one, even where the answer to this was lost on its way and it is asked for again.
 */
export async function rotateSecret(app: App, caller: Caller, id: string): Promise<{ secret: string }> {
  const secret = mintSecret();
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "webhook_secret_rotated");
    const row = await ownEndpoint(tx, caller.user, id);
    const replaced = replaceSecret(app, row, { secret, until: app.calmAfter(OVERLAP_SECONDS) });
    const change = { ...replaced, updated: app.now() };
    await tx.updateTable("webhook_endpoints").set(change).where("id", "=", row.id).execute();
    return { secret };
  });
}

/** The user's own endpoint, or `not_found`, whether it is unknown or somebody else's. */
export async function ownEndpoint(db: Db, user: UserRow, id: string): Promise<WebhookEndpointRow> {
  const row = await db
    .selectFrom("webhook_endpoints")
    .selectAll()
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such webhook endpoint.");
  return row;
}

function viewEndpoint(row: WebhookEndpointRow) {
  return {
    id: row.id,
    url: row.url,
    event_types: storedJson<EventType[]>(row.event_types, []),
    enabled: row.enabled === 1,
    consecutive_failures: row.consecutive_failures,
    disabled_reason: row.disabled_reason,
    description: row.description,
    created: row.created,
    updated: row.updated,
  };
}

async function endpointsOf(db: Db, user: UserRow): Promise<WebhookEndpointRow[]> {
  return db
    .selectFrom("webhook_endpoints")
    .selectAll()
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
}

/**
 * Refuses one more endpoint than the plan has. Only those that are switched on count: a smaller plan has switched the
 * others off.
 */
async function refuseOneMore(app: App, tx: Db, user: UserRow): Promise<void> {
  const running = (await endpointsOf(tx, user)).filter(({ enabled }) => enabled === 1);
  refuseOverCap(app, user, "webhooks", { wanted: running.length + 1, which: " that are switched on" });
}

function columnsOf({ url, event_types, enabled, description }: EndpointSettings) {
  return {
    ...(url === undefined ? {} : { url }),
    ...(event_types === undefined ? {} : { event_types: JSON.stringify(withoutStar(event_types)) }),
    ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
    // Switching it on forgets why it was off; one that its owner switches off is not switched on by a larger plan.
    ...(enabled === undefined ? {} : { disabled_reason: null }),
    ...(enabled === true ? { consecutive_failures: 0 } : {}),
    ...(description === undefined ? {} : { description }),
  };
}

function withoutStar(event_types: (EventType | "*")[]): EventType[] {
  const named = [...new Set(event_types)].filter((type) => type !== "*");
  return event_types.includes("*") ? EVENT_TYPES : named;
}
