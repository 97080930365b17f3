import type { Json } from "./notes-server.ts";
import { type ApiCall, type StandIn, startStandIn } from "./api-stand-in.ts";

// A stand-in for the part of Google Sheets v4 that the tools use:
// https://developers.google.com/workspace/sheets/api/reference/rest

export interface SheetsServer extends StandIn {
  /** Rows by `spreadsheet/sheet`. */
  rows: Map<string, unknown[][]>;
}

export function startSheets(token: string): SheetsServer {
  const rows = new Map<string, unknown[][]>();
  const standIn = startStandIn((call) => judge(call, token) ?? answer(call, rows));
  return Object.assign(standIn, { rows });
}

function judge({ headers, method, body }: ApiCall, token: string): Response | undefined {
  if (headers["authorization"] !== `Bearer ${token}`)
    return refusal(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.");
  if (method === "POST" && (body === undefined || headers["content-type"] !== "application/json"))
    return refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received.");
  return undefined;
}

function answer(call: ApiCall, rows: Map<string, unknown[][]>): Response {
  if (call.method === "POST" && call.path === "/v4/spreadsheets") return create(call, rows);
  const [, id = "", range] =
    /^\/v4\/spreadsheets\/([A-Za-z0-9_-]+)(?:\/values\/([^/:]+)(?::append)?)?$/.exec(call.path) ?? [];
  const sheets = [...rows.keys()].filter((key) => key.startsWith(`${id}/`));
  if (sheets.length === 0) return refusal(404, "NOT_FOUND", "Requested entity was not found.");
  return range === undefined
    ? describe(id, sheets, rows)
    : ofRange(call, { id, range: decodeURIComponent(range), rows });
}

function ofRange(
  call: ApiCall,
  { id, range, rows }: { id: string; range: string; rows: Map<string, unknown[][]> },
): Response {
  const [name = ""] = range.replaceAll("'", "").split("!");
  const found = rows.get(`${id}/${name}`);
  if (found === undefined) return refusal(400, "INVALID_ARGUMENT", `Unable to parse range: ${range}`);
  const route = `${call.method} ${call.path.endsWith(":append") ? "append" : "values"}`;
  if (route === "POST append") return append(call, { id, name, found });
  if (route !== "GET values") return refusal(404, "NOT_FOUND", "Requested entity was not found.");
  return Response.json({
    range: `${name}!A1:Z${found.length || 1}`,
    majorDimension: "ROWS",
    ...(found.length === 0 ? {} : { values: found.map((row) => row.map(String)) }),
  });
}

function append(
  { query, body }: ApiCall,
  { id, name, found }: { id: string; name: string; found: unknown[][] },
): Response {
  if (query["valueInputOption"] === undefined)
    return refusal(400, "INVALID_ARGUMENT", "'valueInputOption' is required but not specified");
  const unknown = Object.keys(body).find((key) => !["range", "majorDimension", "values"].includes(key));
  if (unknown !== undefined)
    return refusal(400, "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "${unknown}"`);
  // USER_ENTERED computes; only RAW keeps a formula as the text that it is.
  const computed = (cell: unknown): unknown =>
    query["valueInputOption"] === "USER_ENTERED" && String(cell).startsWith("=") ? "#COMPUTED" : cell;
  const first = found.length + 1;
  found.push(...body.values.map((row: unknown[]) => row.map(computed)));
  return Response.json({
    spreadsheetId: id,
    tableRange: `${name}!A1:B${first - 1}`,
    updates: {
      spreadsheetId: id,
      updatedRange: `${name}!A${first}:B${found.length}`,
      updatedRows: body.values.length,
    },
  });
}

function create({ body }: ApiCall, rows: Map<string, unknown[][]>): Response {
  const id = `sheet-${Bun.randomUUIDv7()}`;
  for (const { properties, data = [] } of body.sheets)
    rows.set(
      `${id}/${properties.title}`,
      data.flatMap(({ rowData }: Json) => rowData.map(cellsOf)),
    );
  return Response.json({
    spreadsheetId: id,
    properties: body.properties,
    spreadsheetUrl: `https://docs.google.com/spreadsheets/d/${id}/edit`,
  });
}

function cellsOf({ values }: Json): unknown[] {
  return values.map(({ userEnteredValue: value = {} }: Json) => Object.values(value)[0] ?? "");
}

function describe(id: string, sheets: string[], rows: Map<string, unknown[][]>): Response {
  return Response.json({
    properties: { title: "Accounts" },
    spreadsheetUrl: `https://docs.google.com/spreadsheets/d/${id}/edit`,
    sheets: sheets.map((key) => ({
      properties: {
        title: key.slice(id.length + 1),
        gridProperties: { rowCount: rows.get(key)?.length, columnCount: 26 },
      },
    })),
  });
}

function refusal(code: number, status: string, message: string): Response {
  return Response.json({ error: { code, message, status } }, { status: code });
}
