/** For an address that names the version of what is there. */
export const FOR_EVER = "public, max-age=31536000, immutable";

/** The files that this server carries: they do not change while it runs. */
const hashes = new Map<string, string>();

/** Answers with the file, or with 304 to whoever has it; `packed` is what to send in its place, with its Content-Encoding in the headers. */
export async function ownFile(
  path: string,
  request: Request,
  { headers, packed = path }: { headers: Record<string, string>; packed?: string },
): Promise<Response> {
  const etag = `"${await hashOfFile(path)}"`;
  if (isKnown(etag, request)) return new Response(null, { status: 304, headers: { ...headers, etag } });
  return new Response(Bun.file(packed), { headers: { ...headers, etag } });
}

/** Read from the disk, or out of the binary, when it is first asked for. */
export async function hashOfFile(path: string): Promise<string> {
  const hash = hashes.get(path) ?? hashOf(await Bun.file(path).bytes());
  hashes.set(path, hash);
  return hash;
}

/** RFC 9110 §13.1.2. */
export function isKnown(etag: string, request: Request): boolean {
  const known = request.headers.get("if-none-match") ?? "";
  return known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

export function hashOf(content: Uint8Array | string): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 16);
}
