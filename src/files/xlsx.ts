import readXlsxFile from "read-excel-file/universal";
import { counted, type Extract, MAX_FILE_CHARS } from "./reading.ts";
import { refuseSlowXml } from "./xlsx-xml.ts";
import { checkZip } from "./zip.ts";

type Cell = string | number | boolean | Date | null;

/** Entries that the library reads. */
const XML = /\.xml(?:\.rels)?$/;

/** Returns the sheets of a workbook by name, their rows as comma-separated values. */
export async function readXlsx(bytes: Uint8Array): Promise<Extract> {
  checkZip(bytes, ({ name }, unpacked) => {
    if (XML.test(name)) refuseSlowXml(new TextDecoder().decode(unpacked));
  });
  const sheets = await readXlsxFile(new Blob([new Uint8Array(bytes)]));
  let text = "";
  let rows = 0;
  for (const { sheet, data } of sheets) {
    text += `${text === "" ? "" : "\n"}Sheet ${sheet}:\n`;
    for (const row of data) {
      if (text.length > MAX_FILE_CHARS) break;
      text += `${rowOf(row as Cell[])}\n`;
      rows += 1;
    }
  }
  return { text, extent: `${counted(sheets.length, "sheet")}, ${counted(rows, "row")}` };
}

function rowOf(cells: Cell[]): string {
  const filled = cells.findLastIndex((cell) => cell !== null) + 1;
  return cells.slice(0, filled).map(cellOf).join(",");
}

function cellOf(cell: Cell): string {
  if (cell === null) return "";
  const text = cell instanceof Date ? dateOf(cell) : String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a date as text. Workbooks have no time zones, and the library returns their dates as UTC. */
function dateOf(date: Date): string {
  if (Number.isNaN(date.getTime())) return "";
  const [day = "", time = ""] = date.toISOString().slice(0, 19).split("T");
  return time === "00:00:00" ? day : `${day} ${time}`;
}
