/** What fetches an address by being shown, in the markups that mail programs and wikis know. */
const LOADING = [
  /!\[/,
  /<(?:img|image|picture|source|video|audio|track|embed|object|i?frame|link|script|style|base|meta|input|applet|portal)(?![\w-])/i,
  /[\s"'/](?:src|srcset|imagesrcset|lowsrc|dynsrc|background|poster|data|ping|action|formaction|manifest|codebase|longdesc)\s?=/i,
  /(?:url|image|image-set)\s?\(|@import/i,
  /\[img/i,
  /![a-z]{2,20}:\/\//i,
  /image::/i,
  /\[\[(?:file|image):/i,
];
/** Letters of a style sheet can be written as numbers. */
const STYLED = /style/i;

/**
 * Whether a text that is written down would fetch something from elsewhere once somebody looks at it: the address of a
 * picture can tell whoever made the model write it a secret, without a click.
 */
export function loadsByBeingShown(text: string): boolean {
  return LOADING.some((pattern) => pattern.test(text)) || (STYLED.test(text) && text.includes("\\"));
}
