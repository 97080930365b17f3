import { Elysia } from "elysia";
import { AppError } from "../errors.ts";
import { DASHBOARD_FILES } from "./dashboard-files.ts";
import { FOR_EVER, ownFile } from "./own-files.ts";

/** Allows nothing from other origins, and no inline scripts or styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const PACKINGS = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
];
const PAGE = "index.html";

/** Serves `/`, `/app` and below: a single-page application and its files. */
export function dashboardRoutes() {
  return new Elysia()
    .get("/", ({ set }) => {
      set.status = 302;
      set.headers["location"] = "/app";
    })
    .get("/app", ({ request }) => fileResponse(PAGE, request))
    .get("/app/*", ({ params, request }) =>
      fileResponse(Object.hasOwn(DASHBOARD_FILES, params["*"]) ? params["*"] : PAGE, request),
    );
}

async function fileResponse(name: string, request: Request): Promise<Response> {
  const path = DASHBOARD_FILES[name];
  if (path === undefined) throw notBuilt();
  const accepted = request.headers.get("accept-encoding") ?? "";
  const packing = PACKINGS.find(
    ({ encoding, ending }) => accepted.includes(encoding) && `${name}${ending}` in DASHBOARD_FILES,
  );
  const headers: Record<string, string> = {
    "content-type": Bun.file(name).type,
    vary: "Accept-Encoding",
    // File names below assets contain a hash of the content, so they can be cached for ever.
    "cache-control": name.startsWith("assets/") ? FOR_EVER : "no-cache",
    ...(name === PAGE ? { "content-security-policy": CONTENT_SECURITY_POLICY } : {}),
    ...(packing ? { "content-encoding": packing.encoding } : {}),
  };
  return ownFile(path, request, {
    headers,
    packed: DASHBOARD_FILES[`${name}${packing?.ending ?? ""}`] ?? path,
  });
}

function notBuilt(): AppError {
  return new AppError("not_found", "The dashboard is not built.", {
    fix: "Run `bun run build`, or use the API, which is described at /docs.",
  });
}
