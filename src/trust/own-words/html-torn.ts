/** Elements that the end tag of an outer element does not close; that end tag then is ignored (HTML §13.2.4.2). */
const BARRIERS = new Set("applet caption marquee object select table td template th".split(" "));
const PARTS_OF_TABLES = new Set(["caption", "td", "th"]);
const ROWS = new Set(["table", "tbody", "tfoot", "thead", "tr"]);
/** Elements in and behind which browsers and our parser disagree on comments, attributes and text. */
const FOREIGN = new Set(
  "annotation-xml desc foreignObject foreignobject malignmark math mglyph mi mn mo ms mtext noscript script select svg".split(
    " ",
  ),
);

export function isForeign(name: string): boolean {
  return FOREIGN.has(name);
}

/** Returns whether a browser ends an element at its end tag while the elements in `unclosed` are open in it. */
export function mayEnd(name: string, unclosed: readonly string[]): boolean {
  return unclosed.every((inner) => !BARRIERS.has(inner) || (PARTS_OF_TABLES.has(inner) && ROWS.has(name)));
}
