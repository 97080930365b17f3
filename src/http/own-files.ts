import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** For an address that names the version of what is there. */
export const FOR_EVER = "public, max-age=31536000, immutable";

/** Hashes of the server's own files by path: the files do not change while it runs. */
const hashes = new Map<string, string>();

/**
 * Answers with a file, or with 304 to a client that has it. `packed` is a compressed version to send instead, with its
 * Content-Encoding in the headers.
 */
export async function ownFile(
  path: string,
  request: Request,
  { headers, packed = path }: { headers: Record<string, string>; packed?: string },
): Promise<Response> {
  const etag = `"${await hashOfFile(path)}"`;
  if (isKnown(etag, request)) return new Response(null, { status: 304, headers: { ...headers, etag } });
  return new Response(Bun.file(packed), { headers: { ...headers, etag } });
}

/** Returns the hash of a file, read when it is first asked for. */
export async function hashOfFile(path: string): Promise<string> {
  const hash = hashes.get(path) ?? hashOf(await Bun.file(path).bytes());
  hashes.set(path, hash);
  return hash;
}

/** Returns whether the client's If-None-Match has this ETag (RFC 9110 §13.1.2). */
export function isKnown(etag: string, request: Request): boolean {
  const known = request.headers.get("if-none-match") ?? "";
  return known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

export function hashOf(content: Uint8Array | string): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 16);
}

/** What this server says in the same words to everybody, packed when it is first asked for, by its ETag. */
const packed = new Map<string, Promise<Uint8Array>>();
const pack = promisify(gzip);

/** A text that is the same for everybody, as its ETag, packed for whoever can unpack it. */
export async function textResponse(
  text: string,
  request: Request,
  given: Record<"etag" | "content-type" | "cache-control", string>,
): Promise<Response> {
  // Where other origins may read it, the answer differs by origin too (see `cors.ts`).
  const headers = { ...given, vary: "Origin, Accept-Encoding" };
  if (!(request.headers.get("accept-encoding") ?? "").includes("gzip"))
    return new Response(text, { headers });
  const bytes = packed.get(given.etag) ?? pack(text);
  packed.set(given.etag, bytes);
  return new Response((await bytes) as Uint8Array<ArrayBuffer>, {
    headers: { ...headers, "content-encoding": "gzip" },
  });
}
