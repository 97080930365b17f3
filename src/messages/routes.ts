import { Elysia, t } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import { describe } from "../http/describe.ts";
import { pageShape } from "../http/shapes.ts";
import { DEFAULT_PAGE, MAX_PAGE } from "../lib/pagination.ts";
import { listMessages, readAttachment } from "./messages.ts";
import { ActivityShape } from "./shapes.ts";

const ACTIVE_TYPE = /html|svg|xml|javascript|ecmascript/i;
/** What a sender called a type goes into a header only in this form. */
const PLAIN_TYPE = /^[\w.+-]+\/[\w.+-]+(\s*;[\x20-\x7e]*)?$/;

export function messageRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/messages", ({ user, query }) => listMessages(app, user, query), {
      query: t.Object({
        limit: t.Integer({ title: "limit", minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE }),
        cursor: t.Optional(t.String()),
      }),
      ...describe({
        tag: "Messages",
        summary: "The activity log, newest first",
        answers: { 200: pageShape(ActivityShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .get(
      "/messages/:message_id/attachments/:attachment_id",
      async ({ user, params, set }) => {
        const file = await readAttachment(app, user, params);
        const headers = { ...set.headers, ...downloadHeaders(file) } as Record<string, string>;
        return new Response(file.bytes as Uint8Array<ArrayBuffer>, { headers });
      },
      {
        params: t.Object({
          message_id: t.String({ format: "uuid" }),
          attachment_id: t.String({ format: "uuid" }),
        }),
        ...describe({
          tag: "Messages",
          summary: "Download a file of a message",
          answers: {
            200: { content_type: "application/octet-stream", words: "The bytes, always as a download." },
          },
        }),
      },
    );
}

/** Decision J: always a download, and inert should a browser open it all the same (RFC 6266, RFC 8187). */
function downloadHeaders(file: { filename: string; content_type: string }): Record<string, string> {
  const ascii = file.filename.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(file.filename).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return {
    "content-disposition": `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`,
    "content-type": typeOf(file.content_type),
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, no-store",
  };
}

function typeOf(stored: string): string {
  return PLAIN_TYPE.test(stored) && !ACTIVE_TYPE.test(stored) ? stored : "application/octet-stream";
}
