/**
 * SHA-256 of what is there as a whole. The runtime's own function takes a third of the time of `createHash` for the few
 * characters of a key, and leaves no stream behind; every mail is hashed several times.
 */
export function sha256(data: string | Uint8Array, encoding: "hex" | "base64"): string {
  return Bun.CryptoHasher.hash("sha256", data, encoding);
}

/** The same, as 32 bytes. */
export function sha256Bytes(data: string | Uint8Array): Buffer {
  return Bun.CryptoHasher.hash("sha256", data);
}
