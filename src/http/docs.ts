import { Elysia } from "elysia";
import type { App } from "../app.ts";
import { ASSET_NAMES, assetResponse } from "./docs-assets.ts";
import { hashOf, isKnown, textResponse } from "./own-files.ts";
import { errorsPage, referencePage } from "./docs-pages.ts";
import { inboundPage } from "./docs-inbound.ts";
import { webhooksPage } from "./docs-webhooks.ts";
import { type OpenApiDocument, openApiOf } from "./openapi.ts";
import type { DescribedRoute } from "./openapi-operation.ts";

/** Allows nothing from other origins, and no inline scripts or styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves the OpenAPI document, generated from the routes at the first request, and the pages for people. */
export function docsRoutes(app: Pick<App, "base_url" | "config">, routes: () => DescribedRoute[]) {
  let made: Made | undefined;
  const pages = new Elysia()
    .get("/openapi.json", async ({ request }) => {
      const { etag, text } = (made ??= madeOf(routes()));
      const headers = { etag, "cache-control": "no-cache", "content-type": "application/json" };
      if (isKnown(etag, request)) return new Response(null, { status: 304, headers });
      return textResponse(text, request, headers);
    })
    .get("/docs", async () => {
      made ??= madeOf(routes());
      return htmlResponse((made.page ??= await referencePage(app.base_url, made.document)));
    })
    .get("/docs/errors", async () => htmlResponse(await errorsPage()))
    .get("/docs/inbound", async () => htmlResponse(await inboundPage()))
    .get("/docs/webhooks", async () => htmlResponse(await webhooksPage(app.config.webhooks)));
  for (const name of ASSET_NAMES) pages.get(`/docs/${name}`, ({ request }) => assetResponse(name, request));
  return pages;
}

interface Made {
  document: OpenApiDocument;
  text: string;
  etag: string;
  page?: string;
}

function madeOf(routes: DescribedRoute[]): Made {
  const document = openApiOf(routes);
  const text = JSON.stringify(document);
  return { document, text, etag: `"${hashOf(text)}"` };
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
