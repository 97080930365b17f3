import { Elysia } from "elysia";
import { type KeyMarks, prepareExportLetter } from "../accounts/account-mail.ts";
import { keyNamed, shownKey } from "../accounts/api-keys.ts";
import { noteSecurityEvent } from "../accounts/security-events.ts";
import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { authenticated } from "../http/auth.ts";
import { describe } from "../http/describe.ts";
import { downloadHeaders } from "../http/download.ts";
import { clientAddress, refuseOverRate } from "../http/request.ts";
import { exportOf } from "./export.ts";
import { byteStreamOf } from "../lib/byte-stream.ts";
import { zipOf } from "../lib/zip.ts";

const DAY_SECONDS = 86_400;

export function exportRoutes(app: App) {
  const { export_per_day: limit } = app.config.limits;
  return new Elysia().use(authenticated(app)).get(
    "/auth/export",
    async ({ user, key_id, request, server, set }) => {
      refuseOverRate(app, `export:${user.id}`, { limit, window_seconds: DAY_SECONDS });
      const client = clientAddress(app, { request, server });
      await noteExport(app, user, { client, by: await keyNamed(app.db, key_id) });
      const day = new Date(app.nowMs()).toISOString().slice(0, "YYYY-MM-DD".length);
      const file = { filename: `mailwright-${day}.zip`, content_type: "application/zip" };
      const headers = { ...set.headers, ...downloadHeaders(file) } as Record<string, string>;
      const archive = zipOf(exportOf(app, user));
      const stream = byteStreamOf(archive, {
        // The answer has begun: all that can be done is to break it off, which leaves no valid archive.
        onError: (error) => app.log.error({ err: error }, "an export broke off"),
        onLeave: async () => void (await archive.return(undefined)),
      });
      return new Response(stream, { headers });
    },
    describe({
      tag: "Auth",
      summary: "Everything that is kept for your account, as one zip",
      description:
        "Made while it is sent, so its length is not known before. Its README.txt says what is what. Secrets are not in it. The owner is told by mail when it is asked for with an API key.",
      answers: {
        200: { content_type: "application/zip", words: "The archive, always as a download." },
      },
    }),
  );
}

/** In the security events, and with a key in a mail as well: it may be in the wrong hands. */
async function noteExport(
  app: App,
  user: UserRow,
  { client, by }: { client: string; by: KeyMarks | null },
): Promise<void> {
  const queue = by === null ? undefined : await prepareExportLetter(app, user, by);
  await app.write(async (tx) => {
    const event = { user_id: user.id, kind: "account_exported", client } as const;
    await noteSecurityEvent(app, tx, { ...event, api_key: shownKey(by) });
    await queue?.(tx);
  });
}
