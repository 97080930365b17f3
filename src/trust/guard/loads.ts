import { withoutEntities } from "./as-read.ts";

/** Markup that fetches a URL when it is shown, in the formats of mail programs and wikis. */
const LOADING = [
  /!\[/,
  /<(?:[\w-]{1,40}:)?(?:img|image|picture|source|video|audio|track|embed|object|i?frame|link|script|style|base|meta|input|applet|portal)(?![\w-])/i,
  /[\s"'/](?:src|srcset|imagesrcset|lowsrc|dynsrc|background|poster|data|ping|action|formaction|manifest|codebase|longdesc)\s{0,99}=/i,
  /(?:url|image|image-set)\s?\(|@import/i,
  /\[img/i,
  /![a-z]{2,20}:\/\//i,
  /image::/i,
  /\[\[(?:file|image):/i,
];
/** Letters in a style sheet can be written as numeric escapes. */
const STYLED = /style/i;

/**
 * Returns whether showing a text would fetch something remote: the URL of a picture can tell a secret, without a click,
 * to whoever made the model write it.
 */
export function loadsByBeingShown(text: string): boolean {
  const read = withoutEntities(text);
  return LOADING.some((pattern) => pattern.test(read)) || (STYLED.test(read) && read.includes("\\"));
}
