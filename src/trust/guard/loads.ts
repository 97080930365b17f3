import { withoutEntities } from "./as-read.ts";
import { remembered } from "./remembered.ts";
import { stylesRead } from "./styles.ts";

/** Markup that fetches a URL when it is shown, in the formats of mail programs and wikis. */
const LOADING = [
  /!\[/,
  /<(?:[^\s<>/:]*:)?(?:img|image|picture|source|video|audio|bgsound|track|embed|object|i?frame|frameset|link|script|style|base|meta|input|applet|portal|fencedframe|feimage|include)(?![\w-])/i,
  /<\?xml-stylesheet/i,
  /[\s"'/](?:src|srcset|srcdoc|imagesrcset|lowsrc|dynsrc|background|poster|data|ping|action|formaction|manifest|codebase|longdesc|attributionsrc)\s*=/i,
  /\[img/i,
  /![a-z]{2,20}:\/\//i,
  /image::/i,
  /\[\[(?:file|image):/i,
];
/** What a style sheet loads by. */
const STYLES = /(?:url|src|image|image-set)\s?\(|@import/i;
/** Letters in a style sheet can be written as numeric escapes. */
const STYLED = /style/i;

/**
 * Returns whether showing a text would fetch something remote: the URL of a picture can tell a secret, without a click,
 * to whoever made the model write it.
 */
export const loadsByBeingShown = remembered((text): boolean => {
  const read = withoutEntities(text);
  if (LOADING.some((pattern) => pattern.test(read)) || STYLES.test(read)) return true;
  return read.includes("\\") && (STYLED.test(read) || STYLES.test(stylesRead(read)));
});
