import { type Extract, counted, Unreadable } from "./reading.ts";
import { shownName } from "./shown-name.ts";
import { readZipTable } from "./zip.ts";

const MAX_LISTED = 1_000;

/** Returns the names and sizes of the files in an archive. Unpacks nothing. */
export function listArchive(bytes: Uint8Array): Extract {
  const entries = readZipTable(bytes);
  if (entries === undefined) throw new Unreadable("is damaged");
  const files = entries.filter(({ name }) => !name.endsWith("/"));
  const lines = files
    .slice(0, MAX_LISTED)
    .map(({ name, unpacked }) => `- ${shownName(name)} (${counted(unpacked, "byte")})`);
  return {
    text: lines.join("\n"),
    extent: `names of ${counted(files.length, "file")}`,
    partly: "only the list of its files was read; attach the files themselves to have them read",
  };
}
