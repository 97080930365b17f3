const ACTIVE_TYPE = /html|svg|xml|javascript|ecmascript/i;
/** The form of a content type that is safe to repeat in a header; a sender chose its text. */
const PLAIN_TYPE = /^[\w.+-]+\/[\w.+-]+(\s*;[\x20-\x7e]*)?$/;

/**
 * Returns the headers of a file, which is always a download, and inert even if a browser opens it (RFC 6266, RFC 8187;
 * decision J).
 */
export function downloadHeaders(file: { filename: string; content_type: string }): Record<string, string> {
  const ascii = file.filename.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  // An unpaired surrogate cannot be encoded.
  const encoded = encodeURIComponent(file.filename.toWellFormed()).replaceAll(
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
