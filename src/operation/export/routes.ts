import { Elysia } from "elysia";
import { prepareExportLetter } from "../../resources/accounts/account-mail.ts";
import { noteChange } from "../../resources/accounts/changes.ts";
import { keyMarksOf } from "../../resources/accounts/key-marks.ts";
import type { Caller } from "../../resources/accounts/sessions.ts";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { downloadHeaders } from "../../http/download.ts";
import { refuseOverRate } from "../../http/request.ts";
import { exportOf } from "./export.ts";
import { byteStreamOf } from "../../net/byte-stream.ts";
import { zipOf } from "../../lib/zip.ts";
import { dayAt, DAY_SECONDS } from "../../lib/durations.ts";

export function exportRoutes(app: App) {
  const { export_per_day: limit } = app.config.limits;
  return new Elysia().use(authenticated(app)).get(
    "/auth/export",
    async ({ user, caller, set }) => {
      refuseOverRate(app, `export:${user.id}`, { limit, window_seconds: DAY_SECONDS });
      await noteExport(app, caller);
      const day = dayAt(app.now());
      const file = { filename: `mailwright-${day}.zip`, content_type: "application/zip" };
      const headers = { ...set.headers, ...downloadHeaders(file) } as Record<string, string>;
      const archive = zipOf(exportOf(app, user));
      const stream = byteStreamOf(archive, {
        // The status has been sent, so breaking off is the only signal left; it leaves an invalid archive.
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

/**
 * Records an export in the security events, and mails the owner if an API key asked for it, since the key may be
 * stolen.
 */
async function noteExport(app: App, caller: Caller): Promise<void> {
  const by = await keyMarksOf(app.db, caller.key_id);
  const queue = by === null ? undefined : await prepareExportLetter(app, caller.user, by);
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "account_exported");
    await queue?.(tx);
  });
}
