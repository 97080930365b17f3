import { asRead } from "./as-read.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";

/** As the command grammar writes them, and as mail programs change two dashes. */
const TOKEN =
  /(?<![\p{L}\p{N}_.@+$-])(?:@[a-z][a-z0-9_-]{0,63}(?::[a-z][a-z0-9_-]{0,63})?|[$+][a-z][a-z0-9-]{0,63}|(?:--|[\u2013\u2014])[a-z][a-z-]{0,40})/giu;

/**
 * Returns a word in the arguments of a tool that this server takes for an order (`@office`, `--allow-destructive`) where it
 * stands in a mail of the owner's; undefined if there is none. A tool that answers a mail by its id may answer one from
 * here, and its answer comes in the owner's name, from the owner's own mail server.
 */
export function orderIn(args: Record<string, unknown>, orders: string[]): string | undefined {
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
