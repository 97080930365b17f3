import bundle from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import bundleStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import init from "./docs-init.js" with { type: "file" };
import style from "./docs.css" with { type: "file" };

/** The files of the pages below /docs, by their names there. In the built binary they are inside of it. */
const FILES = {
  "swagger-ui-bundle.js": bundle,
  "swagger-ui.css": bundleStyle,
  "init.js": init,
  "style.css": style,
};
export type AssetName = keyof typeof FILES;
export const ASSET_NAMES = Object.keys(FILES) as AssetName[];

const YEAR_SECONDS = 31_536_000;
const versions = new Map<AssetName, string>();

/** The path of a file with its version: another content has another address, so browsers may keep it. */
export async function assetUrl(name: AssetName): Promise<string> {
  return `/docs/${name}?v=${await versionOf(name)}`;
}

/** Read from the disk, or out of the binary, when it is asked for. */
export async function assetResponse(name: AssetName, request: Request): Promise<Response> {
  const etag = `"${await versionOf(name)}"`;
  const headers = {
    etag,
    "cache-control": `public, max-age=${YEAR_SECONDS}, immutable`,
    "content-type": `${name.endsWith(".css") ? "text/css" : "text/javascript"}; charset=utf-8`,
  };
  if (isKnown(etag, request)) return new Response(null, { status: 304, headers });
  return new Response(Bun.file(FILES[name]), { headers });
}

/** RFC 9110 §13.1.2. */
export function isKnown(etag: string, request: Request): boolean {
  const known = request.headers.get("if-none-match") ?? "";
  return known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

async function versionOf(name: AssetName): Promise<string> {
  const version = versions.get(name) ?? hashOf(await Bun.file(FILES[name]).bytes());
  versions.set(name, version);
  return version;
}

export function hashOf(content: Uint8Array | string): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 16);
}
