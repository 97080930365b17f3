const ACTIVE_TYPE = /html|svg|xml|javascript|ecmascript/i;
/** What a sender called a type goes into a header only in this form. */
const PLAIN_TYPE = /^[\w.+-]+\/[\w.+-]+(\s*;[\x20-\x7e]*)?$/;

/** Decision J: always a download, and inert should a browser open it all the same (RFC 6266, RFC 8187). */
export function downloadHeaders(file: { filename: string; content_type: string }): Record<string, string> {
  const ascii = file.filename.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  // Half of a surrogate pair cannot be encoded.
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
