import { withoutBlanks } from "./header-block.ts";

/** A structured MIME value (RFC 2045 §5.1): `text/plain; charset=utf-8`. Names and the value are in lower case. */
export interface MimeValue {
  value: string;
  parameters: Map<string, string>;
}

const TOKENS = /^[!#$%&'*+.^_`{|}~\w/-]*$/;
/** One parameter. Its value may be quoted; an unquoted one is read by programs up to the next semicolon. */
const PARAMETER =
  /;[ \t]*(?:([!#$%&'*+.^_`{|}~\w-]+)[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\[^])*)"|([^;"\\]*)))?)?[ \t]*/y;
/**
 * Parameters that decide how a part is read. A program that does not know of pieces (RFC 2231) misses one in pieces.
 */
const DECIDING = /^(?:boundary|charset|format|delsp)(?:\*.*)?$/;
const UNDISPUTED = /^[!-'*-~]*$/;

/**
 * Reads a structured value if all programs read it alike. Undefined if they may not: it has comments, open quotes, a
 * parameter twice, or a deciding parameter in pieces.
 */
export function readMimeValue(text: string): MimeValue | undefined {
  const [first = ""] = text.split(";", 1);
  const value = withoutBlanks(first);
  if (!TOKENS.test(value)) return undefined;
  const parameters = new Map<string, string>();
  for (let at = first.length; at < text.length; at = PARAMETER.lastIndex) {
    PARAMETER.lastIndex = at;
    const found = PARAMETER.exec(text);
    if (!found) return undefined;
    const [, name = "", quoted, plain = ""] = found;
    const key = name.toLowerCase();
    if (isDisputed(key, quoted, plain) || parameters.has(key)) return undefined;
    if (key !== "") parameters.set(key, quoted?.replaceAll(/\\([^])/g, "$1") ?? withoutBlanks(plain));
  }
  return { value: value.toLowerCase(), parameters };
}

function isDisputed(name: string, quoted: string | undefined, plain: string): boolean {
  if (!DECIDING.test(name)) return false;
  return name.includes("*") || (quoted === undefined && !UNDISPUTED.test(withoutBlanks(plain)));
}
