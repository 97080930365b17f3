import { Elysia } from "elysia";
import type { App } from "../app.ts";
import { ASSET_NAMES, assetResponse } from "./docs-assets.ts";
import { hashOf, isKnown } from "./own-files.ts";
import { errorsPage, referencePage } from "./docs-pages.ts";
import { inboundPage } from "./docs-inbound.ts";
import { webhooksPage } from "./docs-webhooks.ts";
import { openApiOf } from "./openapi.ts";
import type { DescribedRoute } from "./openapi-operation.ts";

/** Allows nothing from other origins, and no inline scripts or styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves the OpenAPI document, generated from the routes at the first request, and the pages for people. */
export function docsRoutes(app: Pick<App, "base_url" | "config">, routes: () => DescribedRoute[]) {
  let document: { text: string; etag: string } | undefined;
  const pages = new Elysia()
    .get("/openapi.json", ({ request }) => {
      document ??= documentOf(routes());
      const headers = {
        etag: document.etag,
        "cache-control": "no-cache",
        "content-type": "application/json",
      };
      if (isKnown(document.etag, request)) return new Response(null, { status: 304, headers });
      return new Response(document.text, { headers });
    })
    .get("/docs", async () => htmlResponse(await referencePage(app.base_url)))
    .get("/docs/errors", async () => htmlResponse(await errorsPage()))
    .get("/docs/inbound", async () => htmlResponse(await inboundPage()))
    .get("/docs/webhooks", async () => htmlResponse(await webhooksPage(app.config.webhooks)));
  for (const name of ASSET_NAMES) pages.get(`/docs/${name}`, ({ request }) => assetResponse(name, request));
  return pages;
}

function documentOf(routes: DescribedRoute[]): { text: string; etag: string } {
  const text = JSON.stringify(openApiOf(routes));
  return { text, etag: `"${hashOf(text)}"` };
}

function htmlResponse(html: string): Response {
  return new Response(html, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": CONTENT_SECURITY_POLICY,
      "cache-control": "no-cache",
    },
  });
}
