import { Parser } from "htmlparser2";

/** Values that switch a property off (ISO/IEC 29500-1 §17.17.4). */
const OFF = new Set(["0", "false", "off"]);

export interface ShownXml {
  xml: string;
  /** How many runs of text were removed. */
  hidden: number;
}

interface Run {
  start: number;
  hidden: boolean;
}

/** Returns a part of a Word document without text marked as hidden (ISO/IEC 29500-1 §17.3.2.41). */
export function withoutHiddenRuns(xml: string): ShownXml {
  if (!xml.includes("vanish")) return { xml, hidden: 0 };
  const path: string[] = [];
  const runs: Run[] = [];
  const cuts: [start: number, end: number][] = [];
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        const [parent, grandparent] = [path.at(-1), path.at(-2)];
        path.push(localName(name));
        const run = runs.at(-1);
        if (path.at(-1) === "r") runs.push({ start: parser.startIndex, hidden: false });
        // Elsewhere `vanish` belongs to an earlier version or to another element.
        if (run && path.at(-1) === "vanish" && parent === "rPr" && grandparent === "r")
          run.hidden = isOn(attributes);
      },
      onclosetag: () => {
        if (path.pop() !== "r") return;
        const run = runs.pop();
        if (run?.hidden) cuts.push([run.start, parser.endIndex + 1]);
      },
    },
    { xmlMode: true },
  );
  parser.end(xml);
  return { xml: cutOut(xml, cuts), hidden: cuts.length };
}

/** Returns the text of a header or footer, one paragraph a line. */
export function plainWords(xml: string): string {
  const lines: string[] = [];
  let line = "";
  let inText = false;
  const parser = new Parser(
    {
      onopentag: (name) => {
        const local = localName(name);
        inText = local === "t";
        if (local === "tab" || local === "br") line += " ";
      },
      ontext: (text) => {
        if (inText) line += text;
      },
      onclosetag: (name) => {
        inText = false;
        if (localName(name) !== "p") return;
        lines.push(line.trim());
        line = "";
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.end(xml);
  return lines.filter(Boolean).join("\n");
}

/** Returns an element's name without its namespace prefix, which each file chooses itself. */
function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

function isOn(attributes: Record<string, string>): boolean {
  const value = Object.entries(attributes).find(([name]) => localName(name) === "val")?.[1];
  return value === undefined || !OFF.has(value);
}

/** Removes ranges. They come sorted by their ends, so that a nested one precedes the one around it. */
function cutOut(xml: string, cuts: [start: number, end: number][]): string {
  const kept: string[] = [];
  let end = xml.length;
  for (const [start, stop] of cuts.toReversed()) {
    if (start >= end) continue;
    kept.push(xml.slice(stop, end));
    end = start;
  }
  return [...kept, xml.slice(0, end)].toReversed().join("");
}
