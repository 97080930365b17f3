import { member } from "../../lib/foreign-json.ts";
import type { Ask } from "./api-request.ts";
import { day, label, listIn } from "./api-text.ts";
import { markdownOf, plainTextOf } from "./notes-rich-text.ts";

/** The most requests for one page: Notion allows three a second, and a page may hold thousands of blocks. */
const MAX_REQUESTS = 30;
const MAX_PAGE_CHARS = 50_000;
const MAX_DEPTH = 8;
const PAGE_SIZE = "100";

/** A page as Markdown: its title, its properties, and its blocks as far as they may be read. */
export async function pageText(id: string, ask: Ask): Promise<string> {
  const page = (await ask({ path: ["pages", id] })).data;
  const reading: Reading = { ask, requests: MAX_REQUESTS, chars: 0, cut: false };
  const body = await childrenText(reading, id, 0);
  const head = [
    `# ${titleOf(page)}`,
    `URL: ${label(page, "url")}`,
    `Edited: ${day(page, "last_edited_time")}`,
    ...propertyLines(page),
  ];
  const rest = reading.cut ? ["(The rest of the page was not read: it is too long.)"] : [];
  return [head.join("\n"), body || "(The page is empty.)", ...rest].join("\n\n");
}

/** Returns the title of a page, a data source or a database. */
export function titleOf(thing: unknown): string {
  const properties = Object.values((member(thing, "properties") ?? {}) as Record<string, unknown>);
  const property = properties.find((one) => member(one, "type") === "title");
  const texts = listIn(thing, "title").length > 0 ? listIn(thing, "title") : listIn(property, "title");
  return plainTextOf(texts).replaceAll(/\s+/g, " ").trim().slice(0, 300) || "Untitled";
}

interface Reading {
  ask: Ask;
  /** Requests that may still be made. */
  requests: number;
  /** Characters that were read. */
  chars: number;
  cut: boolean;
}

async function childrenText(reading: Reading, id: string, depth: number): Promise<string> {
  const texts: string[] = [];
  let [before, number] = ["", 0];
  for (const block of await childrenOf(reading, id)) {
    const type = label(block, "type");
    number = type === "numbered_list_item" ? number + 1 : 0;
    const text = await blockText(reading, block, { depth, number });
    if (text === "") continue;
    const tight = type === before && /_list_item$|^to_do$/.test(type);
    texts.push(`${texts.length === 0 ? "" : tight ? "\n" : "\n\n"}${text}`);
    before = type;
  }
  return texts.join("");
}

async function childrenOf(reading: Reading, id: string): Promise<unknown[]> {
  const blocks: unknown[] = [];
  let cursor = "";
  do {
    if (reading.requests === 0 || reading.chars > MAX_PAGE_CHARS) {
      reading.cut = true;
      break;
    }
    reading.requests -= 1;
    const query = { page_size: PAGE_SIZE, ...(cursor === "" ? {} : { start_cursor: cursor }) };
    const { data } = await reading.ask({ path: ["blocks", id, "children"], query });
    blocks.push(...listIn(data, "results"));
    cursor = member(data, "has_more") === true ? label(data, "next_cursor") : "";
  } while (cursor !== "");
  return blocks;
}

async function blockText(
  reading: Reading,
  block: unknown,
  { depth, number }: { depth: number; number: number },
): Promise<string> {
  const type = label(block, "type");
  const data = member(block, type);
  const id = label(block, "id");
  const own = ownText(type, data, { id, number });
  reading.chars += own.length;
  // Pages and databases inside of the page are not read with it: they are pages of their own.
  const nested = member(block, "has_children") === true && !type.startsWith("child_");
  if (!nested) return own;
  if (depth >= MAX_DEPTH) {
    reading.cut = true;
    return own;
  }
  if (type === "table") return tableText(await childrenOf(reading, id));
  const inner = await childrenText(reading, id, depth + 1);
  return [own, indented(type, inner)].filter(Boolean).join("\n");
}

const PREFIXES: Record<string, string> = {
  heading_1: "# ",
  heading_2: "## ",
  heading_3: "### ",
  heading_4: "#### ",
  bulleted_list_item: "- ",
  toggle: "- ",
  quote: "> ",
  callout: "> ",
};

function ownText(type: string, data: unknown, { id, number }: { id: string; number: number }): string {
  if (type === "divider") return "---";
  if (type === "code")
    return `\`\`\`${label(data, "language")}\n${plainTextOf(listIn(data, "rich_text"))}\n\`\`\``;
  if (type === "equation") return `$$${label(data, "expression")}$$`;
  if (type === "child_page") return `[Page: ${label(data, "title")}] (id ${id})`;
  if (type === "child_database") return `[Database: ${label(data, "title")}] (id ${id})`;
  const text = markdownOf(listIn(data, "rich_text"));
  if (type === "numbered_list_item") return `${number}. ${text}`;
  if (type === "to_do") return `- [${member(data, "checked") === true ? "x" : " "}] ${text}`;
  const prefix = PREFIXES[type];
  if (prefix !== undefined)
    return text
      .split("\n")
      .join(`\n${prefix === "> " ? prefix : "  "}`)
      .replace(/^/, prefix);
  return text || mediaText(type, data);
}

/** The text about a picture, file, film or bookmark: its address and its caption. */
function mediaText(type: string, data: unknown): string {
  const url = label(data, "url") || label(data, "external", "url") || label(data, "file", "url");
  const caption = plainTextOf(listIn(data, "caption")) || label(data, "name");
  return url === "" ? "" : `[${type}${caption === "" ? "" : `: ${caption}`}](${url})`;
}

function tableText(rows: unknown[]): string {
  const lines = rows.map((row) => {
    const cells = listIn(member(row, "table_row"), "cells").map((cell) => markdownOf(listIn(cell)));
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  });
  const [first = "", ...rest] = lines;
  const columns = listIn(member(rows[0], "table_row"), "cells").length;
  return [first, `|${" --- |".repeat(columns)}`, ...rest].join("\n");
}

function indented(type: string, text: string): string {
  const prefix = /_list_item$|^to_do$|^toggle$/.test(type)
    ? "  "
    : /^(quote|callout)$/.test(type)
      ? "> "
      : "";
  return text
    .split("\n")
    .map((line) => (line === "" ? prefix.trimEnd() : prefix + line))
    .join("\n");
}

/** The properties of a page in a database, without its title. */
function propertyLines(page: unknown): string[] {
  return Object.entries((member(page, "properties") ?? {}) as Record<string, unknown>)
    .map(([name, property]) => [label(name), propertyText(property)])
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `${name}: ${text}`);
}

function propertyText(property: unknown): string {
  const type = label(property, "type");
  const value = member(property, type);
  if (type === "title") return "";
  if (type === "rich_text") return label(plainTextOf(listIn(value)));
  if (type === "checkbox") return value === true ? "yes" : "no";
  if (type === "date") return [label(value, "start"), label(value, "end")].filter(Boolean).join(" to ");
  if (type === "formula") return propertyText(value);
  if (type === "unique_id") return [label(value, "prefix"), label(value, "number")].filter(Boolean).join("-");
  if (Array.isArray(value))
    return value
      .map((one) => label(one, "name"))
      .filter(Boolean)
      .join(", ");
  return label(value, "name") || label(value);
}
