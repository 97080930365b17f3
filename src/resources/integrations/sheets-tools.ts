import { member } from "../../lib/foreign-json.ts";
import { type Args, closed, idOf, textOf } from "./api-arguments.ts";
import { ApiFault } from "./api-faults.ts";
import type { ApiStyle, Ask, IntegrationTool, Told } from "./api-request.ts";
import { counted, label, listIn } from "./api-text.ts";

const MAX_ROWS = 500;
const MAX_CELLS = 100;

/** Google's interfaces. Each has a host of its own; a stand-in for one of them is taken to serve all. */
export const SHEETS: ApiStyle = {
  kind: "sheets",
  without: /\/oauth2\/v3$/,
  under: "/v4/spreadsheets",
  hosts: { "www.googleapis.com": "sheets.googleapis.com" },
  headers: { accept: "application/json" },
  missing: "Check the id of the spreadsheet, and that the account may open it.",
  redirects: false,
};

const SPREADSHEET_ID = /^[A-Za-z0-9_-]{10,100}$/;

const spreadsheet_id = {
  type: "string",
  pattern: SPREADSHEET_ID.source,
  maxLength: 100,
  description: "The id of the spreadsheet: in its URL the part between /d/ and the next slash.",
};

const rows = {
  type: "array",
  minItems: 1,
  maxItems: MAX_ROWS,
  description: "The new rows, each a list of its cells from left to right.",
  items: {
    type: "array",
    minItems: 1,
    maxItems: MAX_CELLS,
    description: "The cells of one row.",
    items: {
      anyOf: [{ type: "string", maxLength: 50_000 }, { type: "number" }, { type: "boolean" }],
      description: "One cell; an empty text leaves it empty.",
    },
  },
};

export const SHEETS_TOOLS: IntegrationTool[] = [
  {
    name: "read_range",
    description:
      "Reads cells of a spreadsheet as rows of comma-separated values. Without a range it lists the sheets in it.",
    parameters: closed(
      {
        spreadsheet_id,
        range: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description: "In A1 notation, such as Budget!A1:D20, or the name of a whole sheet.",
        },
      },
      ["spreadsheet_id"],
    ),
    read_only: true,
    places: ["spreadsheet_id"],
    run: readRange,
  },
  {
    name: "append_rows",
    description:
      "Adds rows below the last filled row of a sheet. Values are written as they are: a text that begins with = does not become a formula.",
    parameters: closed(
      {
        spreadsheet_id,
        range: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description: "The name of the sheet, such as Budget, or where its table is, such as Budget!A1:D1.",
        },
        rows,
      },
      ["spreadsheet_id", "range", "rows"],
    ),
    read_only: false,
    places: ["spreadsheet_id"],
    run: appendRows,
  },
  {
    name: "create_sheet",
    description:
      "Makes a new spreadsheet in the account, with rows in it if they are given. Gives its id and URL.",
    parameters: closed(
      {
        title: { type: "string", minLength: 1, maxLength: 200, description: "The name of the spreadsheet." },
        sheet: {
          type: "string",
          minLength: 1,
          maxLength: 100,
          description: "The name of the sheet in it; Sheet1 if left out.",
        },
        rows,
      },
      ["title"],
    ),
    read_only: false,
    run: createSheet,
  },
];

async function readRange(args: Args, ask: Ask): Promise<string> {
  const range = textOf(args, "range");
  if (range === "") return sheetsIn(args, ask);
  const { data } = await ask({
    path: [spreadsheetOf(args), "values", range],
    query: { majorDimension: "ROWS", valueRenderOption: "FORMATTED_VALUE" },
  });
  const rows = listIn(data, "values").map((row) => listIn(row).map(csvCell).join(","));
  const read = label(data, "range") || range;
  return rows.length === 0
    ? `${read} is empty.`
    : [`${read} (${counted(rows.length, "row")}):`, ...rows].join("\n");
}

async function sheetsIn(args: Args, ask: Ask): Promise<string> {
  const fields =
    "properties.title,spreadsheetUrl,sheets.properties(title,gridProperties(rowCount,columnCount))";
  const { data } = await ask({ path: [spreadsheetOf(args)], query: { fields } });
  const lines = listIn(data, "sheets").map((sheet) => {
    const grid = member(member(sheet, "properties"), "gridProperties");
    return `- ${label(sheet, "properties", "title")} (${counted(label(grid, "rowCount"), "row")}, ${counted(label(grid, "columnCount"), "column")})`;
  });
  return [`Spreadsheet ${label(data, "properties", "title")}, its sheets:`, ...lines].join("\n");
}

async function appendRows(args: Args, ask: Ask): Promise<string> {
  const { data } = await ask({
    method: "POST",
    path: [spreadsheetOf(args), "values", textOf(args, "range")],
    verb: "append",
    // RAW: no value is taken for a formula. INSERT_ROWS: nothing that stands below is overwritten.
    query: { valueInputOption: "RAW", insertDataOption: "INSERT_ROWS" },
    body: { majorDimension: "ROWS", values: args["rows"] },
  });
  const updates = member(data, "updates");
  const count = label(updates, "updatedRows");
  return `Added ${counted(count, "row")} as ${label(updates, "updatedRange")} of spreadsheet ${label(data, "spreadsheetId")}.`;
}

async function createSheet(args: Args, ask: Ask): Promise<Told> {
  const sheet = textOf(args, "sheet") || "Sheet1";
  const { data } = await ask({
    method: "POST",
    path: [],
    body: {
      properties: { title: textOf(args, "title") },
      sheets: [{ properties: { title: sheet }, data: [{ rowData: listIn(args["rows"]).map(rowData) }] }],
    },
  });
  const id = label(data, "spreadsheetId");
  if (id === "") throw new ApiFault("Google Workspace did not say which spreadsheet it made. Look there.");
  const text = `Made spreadsheet ${id} with the sheet "${sheet}": ${label(data, "spreadsheetUrl")}`;
  return { text, places: [{ id, name: null }] };
}

/** The values of a row. None of them is a formula: those have a member of their own. */
function rowData(row: unknown) {
  const values = listIn(row).map((cell) => {
    if (typeof cell === "number") return { userEnteredValue: { numberValue: cell } };
    if (typeof cell === "boolean") return { userEnteredValue: { boolValue: cell } };
    return cell === "" ? {} : { userEnteredValue: { stringValue: String(cell) } };
  });
  return { values };
}

function spreadsheetOf(args: Args): string {
  return idOf(args, "spreadsheet_id", SPREADSHEET_ID);
}

/** A value as a cell of CSV (RFC 4180 §2). */
function csvCell(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
