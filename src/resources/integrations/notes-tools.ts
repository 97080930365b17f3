import { hasWords } from "../../trust/guard/named-titles.ts";
import type { Place } from "../../trust/guard/tool.ts";
import { oneLine } from "../../lib/one-line.ts";
import { member } from "../../lib/foreign-json.ts";
import { type Args, closed, idOf, textOf } from "./api-arguments.ts";
import { ApiFault } from "./api-faults.ts";
import type { ApiStyle, Ask, IntegrationTool, Told } from "./api-request.ts";
import { counted, day, label, listed, listIn, MAX_LIST } from "./api-text.ts";
import { batchesOf } from "./notes-blocks.ts";
import { pageText, titleOf } from "./notes-read.ts";
import { plainText } from "./notes-rich-text.ts";

/** Notion's interface, in the version that knows databases with several sources of data. */
export const NOTES: ApiStyle = {
  kind: "notes",
  without: /\/v1$/,
  under: "/v1",
  headers: { accept: "application/json", "notion-version": "2026-03-11" },
  missing: "Check the id, and share the page with this integration in Notion.",
  redirects: false,
};

const ID = /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$/;

const id = { type: "string", pattern: ID.source, maxLength: 36 };
const page_id = {
  ...id,
  description:
    "The id of the page: the 32 hexadecimal digits at the end of its URL, with or without hyphens.",
};
const markdown = {
  type: "string",
  minLength: 1,
  maxLength: 20_000,
  description:
    "The text, as Markdown; the rest of a longer one can be appended. Pictures in it become links.",
};

export const NOTES_TOOLS: IntegrationTool[] = [
  {
    name: "search",
    description:
      "Finds pages and databases whose titles have certain words. Gives title, id and URL of each.",
    parameters: closed(
      {
        query: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description: "Words of the title to look for.",
        },
        type: {
          type: "string",
          enum: ["page", "database"],
          description: "Look only for pages, or only for databases; for both if left out.",
        },
      },
      ["query"],
    ),
    read_only: true,
    run: search,
  },
  {
    name: "read_page",
    description: "Reads one page with its properties and its text as Markdown.",
    parameters: closed({ page_id }, ["page_id"]),
    read_only: true,
    places: ["page_id"],
    titled: ["page_id"],
    run: (args, ask) => pageText(idOf(args, "page_id", ID), ask),
  },
  {
    name: "create_page",
    description: "Makes a new page below another page or in a database. Gives its id and URL.",
    parameters: closed(
      {
        parent_id: {
          ...id,
          description: "The id of the page or database that the new page belongs to, as search gives it.",
        },
        parent_type: {
          type: "string",
          enum: ["page", "database"],
          description: "What parent_id is the id of.",
        },
        title: { type: "string", minLength: 1, maxLength: 500, description: "The title, on one line." },
        markdown,
      },
      ["parent_id", "parent_type", "title"],
    ),
    read_only: false,
    places: ["parent_id"],
    titled: ["parent_id"],
    run: createPage,
  },
  {
    name: "append",
    description: "Adds text at the end of a page. What is there stays as it is.",
    parameters: closed({ page_id, markdown }, ["page_id", "markdown"]),
    read_only: false,
    places: ["page_id"],
    titled: ["page_id"],
    run: append,
  },
];

async function search(args: Args, ask: Ask): Promise<Told> {
  const type = textOf(args, "type");
  const value = type === "database" ? "data_source" : type;
  const filter = type === "" ? {} : { filter: { property: "object", value } };
  const body = { query: textOf(args, "query"), page_size: MAX_LIST, ...filter };
  const { data } = await ask({ method: "POST", path: ["search"], body });
  const all = listIn(data, "results");
  const results = all.slice(0, MAX_LIST);
  const lines = results.map((found) => {
    const kind = member(found, "object") === "page" ? "Page" : "Database";
    const facts = `id ${label(found, "id")}, edited ${day(found, "last_edited_time")}`;
    return `- ${kind} "${titleOf(found)}" (${facts}) ${label(found, "url")}`;
  });
  const more = member(data, "has_more") === true || all.length > results.length;
  const text = listed("Found:", lines, { total: null, more });
  return { text, places: results.map(placeOf) };
}

const MAX_SEARCHES = 5;
const SEARCHED_AT_ONCE = 100;

/** All pages and databases with these words in their titles. Whoever shares a page with the owner chooses its title. */
export async function notesCalled(words: string, ask: Ask): Promise<Told> {
  const called: unknown[] = [];
  let cursor: Record<string, string> = {};
  for (let nth = 0; nth < MAX_SEARCHES; nth += 1) {
    const body = { query: words, page_size: SEARCHED_AT_ONCE, ...cursor };
    const { data } = await ask({ method: "POST", path: ["search"], body });
    const results = listIn(data, "results");
    if (results.length > SEARCHED_AT_ONCE) break;
    called.push(...results.filter((found) => hasWords(titleOf(found), words)));
    const next = label(data, "next_cursor");
    if (member(data, "has_more") !== true || next === "") return toldOf(called);
    cursor = { start_cursor: next };
  }
  throw new ApiFault(
    "So much is called alike that it cannot be told whether there is another one with this title. Name it by its id.",
  );
}

function toldOf(called: unknown[]): Told {
  const lines = called.map((found) => `- ${label(found, "id")} ${label(found, "url")}`);
  return { text: lines.join("\n"), places: called.map(placeOf) };
}

function placeOf(found: unknown): Place {
  return { id: label(found, "id"), name: titleOf(found) };
}

async function createPage(args: Args, ask: Ask): Promise<Told> {
  const parent_id = idOf(args, "parent_id", ID);
  const [first = [], ...rest] = batchesOf(textOf(args, "markdown"));
  const title = oneLine(textOf(args, "title"));
  const create = (parent: Record<string, string>) => {
    // "title" is the id that this property has in every database, whatever it is called there.
    const properties = { title: { title: plainText(title) } };
    const body = { parent, properties, ...(first.length === 0 ? {} : { children: first }) };
    return ask({ method: "POST", path: ["pages"], body });
  };
  const { data } = await (textOf(args, "parent_type") === "page"
    ? create({ type: "page_id", page_id: parent_id })
    : createIn(parent_id, create, ask));
  const made = `the page "${title}" (id ${label(data, "id")}): ${label(data, "url")}`;
  const begun = `Made ${made} - but only the beginning of its text is there; append the rest, do not make it again.`;
  await appendAll(rest, { id: label(data, "id"), ask, begun });
  return { text: `Made ${made}`, places: [{ id: label(data, "id"), name: null }] };
}

/**
 * Makes a page in a data source. The id in the URL of a database is that of the database, and not that of its data
 * source, to which a page belongs.
 */
async function createIn<T>(
  id: string,
  create: (parent: Record<string, string>) => Promise<T>,
  ask: Ask,
): Promise<T> {
  try {
    return await create({ type: "data_source_id", data_source_id: id });
  } catch (error) {
    if (!(error instanceof ApiFault) || (error.status !== 404 && error.status !== 400)) throw error;
    const data_source_id = await onlySourceOf(id, ask);
    if (data_source_id === null) throw error;
    return create({ type: "data_source_id", data_source_id });
  }
}

/**
 * The data source of a database; null for what is no database. Throws if there are several, of which somebody has to
 * choose one.
 */
async function onlySourceOf(id: string, ask: Ask): Promise<string | null> {
  const sources = await sourcesOf(id, ask);
  if (sources.length > 1) {
    const named = sources.map((one) => `"${label(one, "name")}" (id ${label(one, "id")})`).join(", ");
    throw new ApiFault(`This database has several sources of data. Give the id of one: ${named}.`);
  }
  return sources.length === 0 ? null : label(sources[0], "id");
}

async function sourcesOf(id: string, ask: Ask): Promise<unknown[]> {
  try {
    return listIn((await ask({ path: ["databases", id] })).data, "data_sources");
  } catch (error) {
    if (error instanceof ApiFault && error.status !== 0) return [];
    throw error;
  }
}

async function append(args: Args, ask: Ask): Promise<string> {
  const id = idOf(args, "page_id", ID);
  const [first, ...rest] = batchesOf(textOf(args, "markdown"));
  if (first === undefined) throw new ApiFault("There is nothing to write in this text.");
  await appendAll([first], { id, ask, begun: "" });
  const begun = "Only the beginning of the text was added; append the rest, not all of it again.";
  await appendAll(rest, { id, ask, begun });
  const count = [first, ...rest].reduce((sum, batch) => sum + batch.length, 0);
  return `Added ${counted(count, "block")} at the end of page ${id}.`;
}

/** Appends blocks, request by request. `begun` says what is there already if one fails. */
async function appendAll(
  batches: unknown[][],
  { id, ask, begun }: { id: string; ask: Ask; begun: string },
): Promise<void> {
  for (const children of batches) {
    try {
      await ask({ method: "PATCH", path: ["blocks", id, "children"], body: { children } });
    } catch (error) {
      if (!(error instanceof ApiFault) || begun === "") throw error;
      throw new ApiFault(`${begun} ${error.message}`, error.status);
    }
  }
}
