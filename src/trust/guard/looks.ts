import type { Tool } from "./tool.ts";
import { wordsInKey } from "./prose.ts";
import { wordSet } from "./words.ts";

/** Words by which tools are called that look at a page. */
const LOOKS = wordSet(
  "fetch get read browse browser open scrape crawl search list view navigate visit download http https curl wget request load extract look lookup find query check inspect render screenshot parse summarize summarise",
);
/** Words by which tools are called that put something there. */
const PUTS = wordSet(
  "add append bookmark book comment commit copy create edit file forward insert invite join log mail make mark message move note notify pay post publish push put record register remind reply respond save schedule send set share store submit subscribe sync transfer tweet update upload upsert write",
);
/** An argument for the page of a tool that is called like nothing of these. */
const PAGE = /^(?:(?:page|target|web)_?)?ur[il]s?$/i;

/**
 * Whether a tool of others looks at what it is given an address of, though its author has not said so (`readOnlyHint`): most say
 * nothing. It may change something for all that is known, and so has to be named; but whoever names it has a page read, not told
 * something.
 */
export function looksByName({ name, parameters }: Pick<Tool, "name" | "parameters">): boolean {
  const words = wordsInKey(name);
  if (words.some((word) => PUTS.has(word))) return false;
  return words.some((word) => LOOKS.has(word)) || needsPage(parameters);
}

function needsPage({ required }: Record<string, unknown>): boolean {
  return Array.isArray(required) && required.some((key) => PAGE.test(String(key)));
}
