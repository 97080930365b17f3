import { asRead } from "./as-read.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";

/** Commands as the grammar defines them, also with two dashes changed by a mail program. */
const TOKEN =
  /(?<![\p{L}\p{N}_.@+$-])(?:@[a-z][a-z0-9_-]{0,63}(?::[a-z][a-z0-9_-]{0,63})?|[$+][a-z][a-z0-9-]{0,63}|(?:--|[\u2013\u2014])[a-z][a-z-]{0,40})/giu;

/**
 * Returns a word in a tool's arguments that would be a command (`@office`, `--allow-destructive`) in a mail from the
 * owner; undefined if there is none. A tool that replies to a mail by its id may reply to one from this server, and its
 * reply comes from the owner's own address and mail server.
 */
export function commandIn(args: Record<string, unknown>, orders: string[]): string | undefined {
  if (orders.length === 0) return undefined;
  const known = new Set(orders);
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH || typeof given.value !== "string") continue;
    for (const [token] of asRead(given.value).matchAll(TOKEN)) {
      const plain = token.toLowerCase().replace(/^[\u2013\u2014]/, "--");
      if (known.has(plain)) return plain;
    }
  }
  return undefined;
}
