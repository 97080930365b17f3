import bundle from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import bundleStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import init from "./docs-init.js" with { type: "file" };
import style from "./docs.css" with { type: "file" };
import { FOR_EVER, hashOfFile, isKnown, textResponse } from "./own-files.ts";

/** The files below /docs by name. In the compiled binary they are embedded. */
const FILES = {
  "swagger-ui-bundle.js": bundle,
  "swagger-ui.css": bundleStyle,
  "init.js": init,
  "style.css": style,
};
export type AssetName = keyof typeof FILES;
export const ASSET_NAMES = Object.keys(FILES) as AssetName[];

/** Returns the path of a file with a hash of its content as version, so that browsers may cache it for ever. */
export async function assetUrl(name: AssetName): Promise<string> {
  return `/docs/${name}?v=${await hashOfFile(FILES[name])}`;
}

export async function assetResponse(name: AssetName, request: Request): Promise<Response> {
  const kind = name.endsWith(".css") ? "text/css" : "text/javascript";
  const etag = `"${await hashOfFile(FILES[name])}"`;
  const headers = { etag, "cache-control": FOR_EVER, "content-type": `${kind}; charset=utf-8` };
  if (isKnown(etag, request)) return new Response(null, { status: 304, headers });
  return textResponse(await Bun.file(FILES[name]).text(), request, headers);
}
