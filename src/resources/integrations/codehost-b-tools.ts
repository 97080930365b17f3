import { ApiFault } from "./api-faults.ts";
import { oneLine } from "../../lib/one-line.ts";
import { member } from "../../lib/foreign-json.ts";
import { type Args, closed, idOf, numberOf, pathPartsOf, textOf } from "./api-arguments.ts";
import type { ApiStyle, Ask, IntegrationTool, Told } from "./api-request.ts";
import { withoutPictures } from "./codehost-pictures.ts";
import { label, listed, listIn, MAX_LIST, restOf, words } from "./api-text.ts";
import {
  fileText,
  issueLine,
  type IssueNames,
  issueText,
  openedIssue,
  withoutCommands,
} from "./codehost-text.ts";

/** GitLab's REST interface, version 4. */
export const CODEHOST_B: ApiStyle = {
  kind: "codehost-b",
  without: /\/api\/v4$/,
  under: "/api/v4",
  headers: { accept: "application/json" },
  missing: "Check the project, the number and the path, and that the token may see the project.",
  redirects: false,
  nested: true,
};

const NAMES: IssueNames = {
  number: "iid",
  author: ["author", "username"],
  url: "web_url",
  comments: "user_notes_count",
};
const PROJECT = /^[A-Za-z0-9_.-]{1,255}(?:\/[A-Za-z0-9_.-]{1,255}){1,20}$/;
const PAGE = { per_page: String(MAX_LIST) };

const project = {
  type: "string",
  pattern: PROJECT.source,
  maxLength: 500,
  description: "The path of the project with its groups, such as acme/tools/website.",
};
const number = {
  type: "integer",
  minimum: 1,
  maximum: 2_147_483_647,
  description: "The number of the issue inside of its project, as in #12.",
};
const body = {
  type: "string",
  minLength: 1,
  maxLength: 50_000,
  description: "The text, as Markdown. Pictures and quick actions in it are shown as plain text.",
};

export const CODEHOST_B_TOOLS: IntegrationTool[] = [
  {
    name: "search_issues",
    description:
      "Finds issues by words in title and description, in one project or in all that the account can see. Gives number, title, state and URL of each.",
    parameters: closed(
      {
        query: { type: "string", minLength: 1, maxLength: 200, description: "Words to look for." },
        project: { ...project, description: "Search only this project, given as its path." },
        state: {
          type: "string",
          enum: ["opened", "closed", "all"],
          description: "Which ones to list; open ones if left out.",
        },
      },
      ["query"],
    ),
    read_only: true,
    places: ["project"],
    run: searchIssues,
  },
  {
    name: "read_issue",
    description: "Reads one issue with its description and its first comments.",
    parameters: closed({ project, number }, ["project", "number"]),
    read_only: true,
    places: ["project"],
    run: readIssue,
  },
  {
    name: "create_issue",
    description: "Opens a new issue in a project. Gives its number and URL.",
    parameters: closed(
      {
        project,
        title: { type: "string", minLength: 1, maxLength: 255, description: "The title, on one line." },
        body,
      },
      ["project", "title"],
    ),
    read_only: false,
    places: ["project"],
    words: ["title", "body"],
    run: createIssue,
  },
  {
    name: "comment_issue",
    description: "Adds a comment to an issue. Gives the id of the comment.",
    parameters: closed({ project, number, body }, ["project", "number", "body"]),
    read_only: false,
    places: ["project"],
    numbered: { place: "project", number: "number" },
    words: ["body"],
    run: commentIssue,
  },
  {
    name: "read_file",
    description:
      "Reads a text file of a repository; or lists what is in a folder if path ends with a slash, or in the topmost one if it is left out.",
    parameters: closed(
      {
        project,
        path: {
          type: "string",
          maxLength: 500,
          description: "The path from the root of the repository, such as docs/setup.md or docs/.",
        },
        ref: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description: "A branch, tag or commit; the default branch if left out.",
        },
      },
      ["project"],
    ),
    read_only: true,
    places: ["project"],
    run: readFile,
  },
  {
    name: "list_merge_requests",
    description: "Lists merge requests of a project, newest first, with number, title, author and URL.",
    parameters: closed(
      {
        project,
        state: {
          type: "string",
          enum: ["opened", "closed", "merged", "all"],
          description: "Which ones to list; open ones if left out.",
        },
      },
      ["project"],
    ),
    read_only: true,
    places: ["project"],
    run: listMergeRequests,
  },
];

async function searchIssues(args: Args, ask: Ask): Promise<Told> {
  const state = textOf(args, "state") || "opened";
  const path = textOf(args, "project") === "" ? ["issues"] : [...projectOf(args), "issues"];
  const query = { ...PAGE, search: textOf(args, "query"), scope: "all", state };
  const { data, headers } = await ask({ path, query });
  const lines = listIn(data).map((issue) => issueLine(issue, NAMES, placeOf(issue)));
  const text = listed("Issues found:", lines, restOf(headers));
  return { text, ...(textOf(args, "project") === "" ? { read: [null] } : {}) };
}

/** The project of an issue: `acme/tools` for `acme/tools#12`. */
function placeOf(issue: unknown): string {
  return label(issue, "references", "full").replace(/#\d+$/, "");
}

async function readIssue(args: Args, ask: Ask): Promise<string> {
  const path = [...projectOf(args), "issues", numberOf(args, "number")];
  const issue = (await ask({ path })).data;
  const total = Number(member(issue, "user_notes_count")) || 0;
  const query = { ...PAGE, sort: "asc", order_by: "created_at", activity_filter: "only_comments" };
  const notes = total === 0 ? [] : (await ask({ path: [...path, "notes"], query })).data;
  // Filtered here as well, since older servers ignore the filter of the request.
  const comments = listIn(notes).filter((note) => member(note, "system") !== true);
  return issueText(issue, NAMES, { comments: comments.slice(0, MAX_LIST), total, body: "description" });
}

async function createIssue(args: Args, ask: Ask): Promise<Told> {
  const body = { title: oneLine(textOf(args, "title")), description: inert(textOf(args, "body")) };
  const { data } = await ask({ method: "POST", path: [...projectOf(args), "issues"], body });
  if (label(data, "iid") === "")
    throw new ApiFault("The host did not say which issue it opened. Look there.");
  return openedIssue(data, NAMES, textOf(args, "project"));
}

async function commentIssue(args: Args, ask: Ask): Promise<string> {
  const number = numberOf(args, "number");
  const path = [...projectOf(args), "issues", number, "notes"];
  const { data } = await ask({ method: "POST", path, body: { body: inert(textOf(args, "body")) } });
  return `Added comment ${label(data, "id")} to issue #${number} in ${textOf(args, "project")}.`;
}

async function readFile(args: Args, ask: Ask): Promise<string> {
  const parts = pathPartsOf(args, "path");
  const ref = textOf(args, "ref") || "HEAD";
  const repository = [...projectOf(args), "repository"];
  const name = parts.join("/");
  if (parts.length === 0 || textOf(args, "path").endsWith("/")) {
    const folder = parts.length === 0 ? {} : { path: name };
    const { data, headers } = await ask({
      path: [...repository, "tree"],
      query: { ...PAGE, ...folder, ref },
    });
    return folderText(name, listIn(data), headers);
  }
  const { data } = await ask({ path: [...repository, "files", name], query: { ref } });
  return fileText(name, words(data, "content"));
}

function folderText(name: string, entries: unknown[], headers: Headers): string {
  const lines = entries.map(
    (entry) => `- ${label(entry, "name")}${label(entry, "type") === "tree" ? "/" : ""}`,
  );
  return listed(`Folder ${name || "/"}:`, lines, restOf(headers));
}

async function listMergeRequests(args: Args, ask: Ask): Promise<string> {
  const query = { ...PAGE, state: textOf(args, "state") || "opened" };
  const { data, headers } = await ask({ path: [...projectOf(args), "merge_requests"], query });
  const lines = listIn(data).map((one) => issueLine(one, NAMES));
  return listed("Merge requests, newest first:", lines, restOf(headers));
}

/** The project as a part of the path: GitLab takes its whole name as one part. */
function projectOf(args: Args): string[] {
  return ["projects", idOf(args, "project", PROJECT)];
}

function inert(text: string): string {
  return withoutCommands(withoutPictures(text));
}
