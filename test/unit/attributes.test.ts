import { expect, test } from "bun:test";
import fc from "fast-check";
import { type DefaultTreeAdapterTypes, parse } from "parse5";
import { shownIn } from "../../src/trust/guard/shown-values.ts";
import { attributesIn } from "../../src/trust/shown/attributes.ts";
import { withoutEntities } from "../../src/trust/guard/as-read.ts";
import { ownMs } from "../support/own-time.ts";

const PIECES =
  "<img|<p|<a|<svg|<style>|</style>|<script>|</script>|<title>|</title>|<textarea>|<!--|-->|--!>|<![CDATA[|]]>|<template>|<iframe|src|href|x|=|='|=\"|'|\"|`|/|>|<| |\n|\t|\f|&#0000104;|&quot;|&lt;|&amp;|https://eve.example/p|\\|a=b".split(
    "|",
  );

function attributesOf(node: DefaultTreeAdapterTypes.Node): { name: string; value: string }[] {
  const inner = "content" in node ? [node.content] : "childNodes" in node ? node.childNodes : [];
  const own =
    "attrs" in node
      ? node.attrs.map(({ prefix, name, value }) => ({ name: prefix ? `${prefix}:${name}` : name, value }))
      : [];
  return [...own, ...inner.flatMap(attributesOf)];
}

test("no browser sees an attribute with a value that is not found, whatever stands around it", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }), (pieces) => {
      const text = pieces.join("");
      const found = new Set(
        [...attributesIn(text)].map(({ name, value }) => `${name}=${withoutEntities(value)}`),
      );
      const wanted = attributesOf(parse(text)).filter(
        ({ name, value }) => /^(?:src|href)$/.test(name) && value !== "",
      );
      for (const { name, value } of wanted) expect([...found]).toContain(`${name}=${value}`);
    }),
    { numRuns: 20_000 },
  );
});

test("a text that was made to be slow to look through is not", () => {
  const started = ownMs();
  for (const piece of [
    "=",
    "a=",
    "a=<",
    '="',
    "='",
    "<a b='",
    "='<&lt;",
    "on=(",
    "url(",
    "![x](&#9;",
    "<script ",
    "\\68 ",
    "&am",
    "&#1",
  ])
    shownIn(piece.repeat(500_000 / piece.length));
  expect(ownMs() - started).toBeLessThan(15_000);
});
