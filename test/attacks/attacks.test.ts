import { expect, test } from "bun:test";
import { ALTERED } from "./altered.ts";
import { BOTS } from "./bots.ts";
import { CALLS } from "./calls.ts";
import { CONTENT } from "./content.ts";
import { DOUBTFUL } from "./doubtful.ts";
import { FILE_TURNS } from "./file-turns.ts";
import { FORMS } from "./forms.ts";
import { GRANTS } from "./grants.ts";
import { NAMED_FILES } from "./named-files.ts";
import { OWN_THINGS } from "./own-things.ts";
import { PACKED } from "./packed.ts";
import { PEOPLE } from "./people.ts";
import { REPLAYS } from "./replays.ts";
import { REFLECTED } from "./reflected.ts";
import { PLAIN_WORD } from "./plain-word.ts";
import { RETURNED } from "./returned.ts";
import { SERVERS } from "./servers.ts";
import { SHARED_POSTS } from "./shared-posts.ts";
import { TOLD_BESIDE } from "./told-beside.ts";
import { WRITTEN_PICTURES } from "./written-pictures.ts";
import type { Attack } from "./attack.ts";

const ATTACKS: Attack[] = [
  ...CONTENT,
  ...PEOPLE,
  ...SERVERS,
  ...GRANTS,
  ...CALLS,
  ...PACKED,
  ...REPLAYS,
  ...ALTERED,
  ...DOUBTFUL,
  ...FILE_TURNS,
  ...REFLECTED,
  ...FORMS,
  ...BOTS,
  ...PLAIN_WORD,
  ...SHARED_POSTS,
  ...NAMED_FILES,
  ...TOLD_BESIDE,
  ...RETURNED,
  ...WRITTEN_PICTURES,
  ...OWN_THINGS,
];

const KINDS = [
  "direct",
  "quoted",
  "forwarded",
  "HTML-hidden",
  "white-on-white",
  "zero-width",
  "tag characters",
  "base64",
  "file names",
  "PDF text",
  "DOCX comments",
  "CSV cells",
  "ICS fields",
  "MCP tool descriptions",
  "MCP tool results",
  "fence imitation",
  "file turns",
  "multi-turn",
  "named files",
  "Cc'd third party",
  "Reply-To",
  "a web form",
  "bots called",
  "homoglyph targets",
  "replays",
  "sent on",
  "a packed address",
  "altered on the way",
  "doubtful parts",
  "display names",
  "plain word: calls",
  "plain word: clicks",
  "plain word: content",
  "plain word: marks",
  "plain word: people",
  "plain word: servers",
  "plain word: signed pages",
  "plain word: subjects",
  "plain word: subjects alone",
  "plain word: threads",
  "shared posts",
  "told beside an address",
  "orders that come back",
  "pictures in what tools write",
  "names of a server's own things",
];

test("there are more than 550 attacks, of every kind that is known", () => {
  const names = ATTACKS.map(({ kind, name }) => `${kind}: ${name}`);
  expect(new Set(names).size).toBe(ATTACKS.length);
  expect(ATTACKS.length).toBeGreaterThan(550);
  expect(ATTACKS.map(({ kind }) => kind)).toEqual(expect.arrayContaining(KINDS));
});
