import { oneLine } from "../../lib/one-line.ts";
import type { Told } from "./api-request.ts";
import { counted, day, label, listIn, words } from "./api-text.ts";

/** The beginning of a line that GitLab carries out: quick actions, such as /close or /move, and includes. */
const COMMAND = /^(?=\/|::)/;
/** Ends of lines, in a group so that `split` keeps them. */
const LINE_ENDS = /(\r\n|[\n\r\v\f\u0085\u2028\u2029])/;

/** Changes a text so that GitLab carries out nothing in it. */
export function withoutCommands(text: string): string {
  return text
    .split(LINE_ENDS)
    .map((line) => {
      const start = line.trimStart();
      return line.slice(0, line.length - start.length) + start.replace(COMMAND, "\\");
    })
    .join("");
}

/** The names of members in a code host's answers about an issue or a change. */
export interface IssueNames {
  number: string;
  /** The member that holds its author, and the member in there with the author's name. */
  author: [string, string];
  url: string;
  /** The member with the number of comments, which not every list has. */
  comments: string;
}

/** The text about an issue that was opened, on which the same run may go on to comment. */
export function openedIssue(issue: unknown, names: IssueNames, place: string): Told {
  const name = `${place}#${label(issue, names.number)}`;
  const text = `Opened issue #${label(issue, names.number)} in ${place}: ${label(issue, names.url)}`;
  return { text, places: [{ id: name, name: null }] };
}

/** The line of an issue in a list. */
export function issueLine(issue: unknown, names: IssueNames, where = ""): string {
  const count = label(issue, names.comments);
  const facts = [
    label(issue, "state"),
    `by ${label(issue, ...names.author) || "somebody"}`,
    count === "" ? "" : counted(count, "comment"),
    `updated ${day(issue, "updated_at")}`,
  ];
  const number = `${where}#${label(issue, names.number)}`;
  return `- ${number} ${label(issue, "title")} (${facts.filter(Boolean).join(", ")}) ${label(issue, names.url)}`;
}

/** An issue with its comments; `total` is how many of those there are. */
export function issueText(
  issue: unknown,
  names: IssueNames,
  { comments, total, body }: { comments: unknown[]; total: number; body: string },
): string {
  const head = [
    `#${label(issue, names.number)} ${label(issue, "title")}`,
    `State: ${label(issue, "state")}`,
    `By: ${label(issue, ...names.author)} on ${day(issue, "created_at")}`,
    `Labels: ${listIn(issue, "labels").map(labelName).filter(Boolean).join(", ")}`,
    `URL: ${label(issue, names.url)}`,
  ].filter((line) => !line.endsWith(": "));
  const shown = comments.map(
    (one) => `Comment by ${label(one, ...names.author)} on ${day(one, "created_at")}:\n${words(one, "body")}`,
  );
  const missing = total - shown.length;
  const more = missing > 0 ? [`(Not shown: ${counted(missing, "more comment")}. See the URL above.)`] : [];
  return [head.join("\n"), words(issue, body) || "(no description)", ...shown, ...more].join("\n\n");
}

/** GitHub's labels are objects, GitLab's are texts. */
function labelName(one: unknown): string {
  return typeof one === "string" ? oneLine(one) : label(one, "name");
}

/** The bytes of a file as text, or a sentence about why not. */
export function fileText(path: string, base64: string): string {
  const bytes = Buffer.from(base64, "base64");
  const text = decode(bytes);
  return text === null || text.includes("\0")
    ? `${path} is not a text file (${bytes.byteLength} bytes), so it is not shown.`
    : `File ${path} (${bytes.byteLength} bytes):\n\n${text}`;
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
