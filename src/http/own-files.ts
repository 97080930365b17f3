/** Cache-Control for a URL that contains a version of its content. */
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
