const HEAD =
  /^\s*-----BEGIN PGP SIGNED MESSAGE-----[ \t]*\n(?:[A-Za-z][A-Za-z-]{0,19}: [^\n]{0,200}\n){0,8}[ \t]*\n/;
const SIGNATURE = "\n-----BEGIN PGP SIGNATURE-----";
const END = "\n-----END PGP SIGNATURE-----";
const DASH_ESCAPED = /^- /gm;

export interface ClearSigned {
  text: string;
  /** The armor around the text, including the signature. */
  armor: string;
  /** Text below the signature, which a mailing list may have put there. */
  below: string;
}

/** Returns a text that inline PGP signs as a whole (RFC 9580 §7) without its armor; any other text as it is. */
export function readClearSigned(text: string): ClearSigned {
  const head = HEAD.exec(text)?.[0];
  if (head === undefined) return { text, armor: "", below: "" };
  const signature = text.indexOf(SIGNATURE, head.length - 1);
  const end = signature === -1 ? -1 : text.indexOf(END, signature);
  const behind = end === -1 ? text.length : end + END.length;
  const inner = text.slice(head.length, signature === -1 ? undefined : signature);
  return {
    text: inner.replace(DASH_ESCAPED, ""),
    armor: `${head.trim()}${signature === -1 ? "" : text.slice(signature, behind)}`,
    below: text.slice(behind),
  };
}
