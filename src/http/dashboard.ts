import { Elysia } from "elysia";
import { isKnown, hashOf } from "./docs-assets.ts";
import { DASHBOARD_FILES } from "./dashboard-files.ts";

/** Nothing is loaded from elsewhere, and no script or style stands in the page itself. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const YEAR_SECONDS = 31_536_000;

/** `/`, `/app` and below: one page that finds its way by itself, and its files. */
export function dashboardRoutes() {
  return new Elysia()
    .get("/", ({ set }) => {
      set.status = 302;
      set.headers["location"] = "/app";
    })
    .get("/app", ({ request }) => page(request))
    .get("/app/*", ({ params, request }) => file(params["*"], request) ?? page(request));
}

function file(name: string, request: Request): Response | undefined | Promise<Response> {
  const path = Object.hasOwn(DASHBOARD_FILES, name) ? DASHBOARD_FILES[name] : undefined;
  if (path === undefined || name === "index.html") return undefined;
  // Files below assets carry their content's hash in their name.
  if (name.startsWith("assets/")) return fileResponse(path, `public, max-age=${YEAR_SECONDS}, immutable`);
  return withTag(path, request, {});
}

async function page(request: Request): Promise<Response> {
  const path = DASHBOARD_FILES["index.html"];
  if (path === undefined) return new Response(NOT_BUILT, { status: 404 });
  return withTag(path, request, { "content-security-policy": CONTENT_SECURITY_POLICY });
}

const NOT_BUILT =
  "The dashboard is not built. Run `bun run build`, or use the API, which is described at /docs.\n";

async function withTag(path: string, request: Request, more: Record<string, string>): Promise<Response> {
  const etag = `"${hashOf(await Bun.file(path).bytes())}"`;
  const headers = { etag, "cache-control": "no-cache", ...more };
  if (isKnown(etag, request)) return new Response(null, { status: 304, headers });
  return new Response(Bun.file(path), { headers });
}

function fileResponse(path: string, cache_control: string): Response {
  return new Response(Bun.file(path), { headers: { "cache-control": cache_control } });
}
