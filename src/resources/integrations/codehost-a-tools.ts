import { member } from "../../lib/foreign-json.ts";
import { type Args, closed, idOf, numberOf, pathPartsOf, textOf } from "./api-arguments.ts";
import { ApiFault } from "./api-faults.ts";
import type { ApiRequest, ApiStyle, Ask, IntegrationTool, Told } from "./api-request.ts";
import { oneLine } from "../../lib/one-line.ts";
import { label, listed, listIn, MAX_LIST, restOf, words } from "./api-text.ts";
import { withoutPictures } from "./codehost-pictures.ts";
import { fileText, issueLine, type IssueNames, issueText, openedIssue } from "./codehost-text.ts";

/** GitHub's REST interface; Gitea, Forgejo and Gogs answer in its shapes below /api/v1. */
export const CODEHOST_A: ApiStyle = {
  kind: "codehost-a",
  under: "",
  headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
  missing: "Check the repository, the number and the path, and that the token may see the repository.",
  redirects: true,
  nested: false,
};

const NAMES: IssueNames = {
  number: "number",
  author: ["user", "login"],
  url: "html_url",
  comments: "comments",
};
const REPOSITORY = /^[A-Za-z0-9_.-]{1,100}\/[A-Za-z0-9_.-]{1,100}$/;
/** Qualifiers of a search that say whose issues are meant. */
const SCOPED = /(?:^|\s)(?:repo|org|user|author|assignee|involves|mentions|commenter):/i;
/** Qualifiers that may widen a search beyond its repository: GitHub takes several of these as alternatives. */
const OTHER_SCOPE = /\b(?:repo|org|user|owner|enterprise|project):/i;
const BOOLEAN = /\b(?:OR|AND|NOT)\b|[()]/;
/** The size of a page, under the names of GitHub and of Gitea. */
const PAGE = { per_page: String(MAX_LIST), limit: String(MAX_LIST) };

const repository = {
  type: "string",
  pattern: REPOSITORY.source,
  maxLength: 201,
  description: "The repository as owner/name, such as octocat/hello-world.",
};
const number = {
  type: "integer",
  minimum: 1,
  maximum: 2_147_483_647,
  description: "The number of the issue or pull request.",
};
const state = {
  type: "string",
  enum: ["open", "closed", "all"],
  description: "Which ones to list; open ones if left out.",
};
const body = {
  type: "string",
  minLength: 1,
  maxLength: 50_000,
  description: "The text, as Markdown. Pictures in it are shown as plain text.",
};

export const CODEHOST_A_TOOLS: IntegrationTool[] = [
  {
    name: "search_issues",
    description:
      "Finds issues by words: in one repository, or else among those that involve the account. Gives number, title, state and URL of each.",
    parameters: closed(
      {
        query: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description:
            "Words to look for. Qualifiers such as label:bug, author:ada or org:acme are understood.",
        },
        repository: { ...repository, description: "Search only this repository, given as owner/name." },
        state,
      },
      ["query"],
    ),
    read_only: true,
    places: ["repository"],
    run: searchIssues,
  },
  {
    name: "read_issue",
    description: "Reads one issue or pull request with its description and its first 50 comments.",
    parameters: closed({ repository, number }, ["repository", "number"]),
    read_only: true,
    places: ["repository"],
    run: readIssue,
  },
  {
    name: "create_issue",
    description: "Opens a new issue in a repository. Gives its number and URL.",
    parameters: closed(
      {
        repository,
        title: { type: "string", minLength: 1, maxLength: 256, description: "The title, on one line." },
        body,
      },
      ["repository", "title"],
    ),
    read_only: false,
    places: ["repository"],
    words: ["title", "body"],
    run: createIssue,
  },
  {
    name: "comment_issue",
    description: "Adds a comment to an issue or pull request. Gives the URL of the comment.",
    parameters: closed({ repository, number, body }, ["repository", "number", "body"]),
    read_only: false,
    places: ["repository"],
    numbered: { place: "repository", number: "number" },
    words: ["body"],
    run: commentIssue,
  },
  {
    name: "read_file",
    description:
      "Reads a text file of a repository, at most 1 MB; or lists what is in a folder, the topmost if path is left out.",
    parameters: closed(
      {
        repository,
        path: {
          type: "string",
          maxLength: 500,
          description: "The path from the root of the repository, such as docs/setup.md.",
        },
        ref: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description: "A branch, tag or commit; the default branch if left out.",
        },
      },
      ["repository"],
    ),
    read_only: true,
    places: ["repository"],
    run: readFile,
  },
  {
    name: "list_pull_requests",
    description: "Lists pull requests of a repository, newest first, with number, title, author and URL.",
    parameters: closed({ repository, state }, ["repository"]),
    read_only: true,
    places: ["repository"],
    run: listPullRequests,
  },
];

async function searchIssues(args: Args, ask: Ask, base: URL): Promise<Told> {
  const place = textOf(args, "repository") === "" ? null : repositoryOf(args);
  const search = { words: textOf(args, "query"), place, state: textOf(args, "state") || "open" };
  // Gitea, Forgejo and Gogs have no /search/issues.
  const { data, headers } = await ask(
    /\/api\/v1\/?$/.test(base.pathname) ? giteaSearch(search) : githubSearch(search),
  );
  const found = listIn(Array.isArray(data) ? data : member(data, "items"));
  const lines = found.map((issue) => issueLine(issue, NAMES, placeOf(issue)));
  const total = member(data, "total_count");
  return {
    text: listed(
      "Issues found:",
      lines,
      typeof total === "number" ? { total, more: false } : restOf(headers),
    ),
    // Finding nothing tells something about all places too.
    read: isWide(search) ? [null] : found.map(placeOf).filter((name) => name !== ""),
  };
}

interface Search {
  words: string;
  place: string[] | null;
  state: string;
}

function isWide({ words, place }: Search): boolean {
  return place === null || OTHER_SCOPE.test(words) || BOOLEAN.test(words);
}

function githubSearch({ words, place, state }: Search): ApiRequest {
  const scope = place === null ? everywhere(words) : [`repo:${place.join("/")}`];
  const q = [words, "is:issue", ...scope, ...(state === "all" ? [] : [`state:${state}`])].join(" ");
  return { path: ["search", "issues"], query: { ...PAGE, q } };
}

/** The qualifiers of a search that names none: all of GitHub is more than anybody means. */
function everywhere(words: string): string[] {
  return SCOPED.test(words) ? [] : ["involves:@me"];
}

function giteaSearch({ words, place, state }: Search): ApiRequest {
  const path = place === null ? ["repos", "issues", "search"] : ["repos", ...place, "issues"];
  return { path, query: { ...PAGE, q: words, type: "issues", state } };
}

/** The repository of an issue, which GitHub names by a URL, and Gitea by an object. */
function placeOf(issue: unknown): string {
  const url = label(issue, "repository_url");
  return label(issue, "repository", "full_name") || url.split("/").slice(-2).join("/");
}

async function readIssue(args: Args, ask: Ask): Promise<Told> {
  const path = ["repos", ...repositoryOf(args), "issues", numberOf(args, "number")];
  const issue = (await ask({ path })).data;
  const total = Number(member(issue, "comments")) || 0;
  const comments = total === 0 ? [] : (await ask({ path: [...path, "comments"], query: PAGE })).data;
  const text = issueText(issue, NAMES, {
    comments: listIn(comments).slice(0, MAX_LIST),
    total,
    body: "body",
  });
  // An issue that was moved is still found by its old number.
  const place = placeOf(issue);
  return { text, ...(place === "" ? {} : { read: [place] }) };
}

async function createIssue(args: Args, ask: Ask): Promise<Told> {
  const path = ["repos", ...repositoryOf(args), "issues"];
  const body = { title: oneLine(textOf(args, "title")), body: withoutPictures(textOf(args, "body")) };
  const { data } = await ask({ method: "POST", path, body });
  if (label(data, "number") === "")
    throw new ApiFault("The host did not say which issue it opened. Look there.");
  return openedIssue(data, NAMES, textOf(args, "repository"));
}

async function commentIssue(args: Args, ask: Ask): Promise<string> {
  const path = ["repos", ...repositoryOf(args), "issues", numberOf(args, "number"), "comments"];
  const body = { body: withoutPictures(textOf(args, "body")) };
  const { data } = await ask({ method: "POST", path, body });
  return `Added comment ${label(data, "id")}: ${label(data, "html_url")}`;
}

async function readFile(args: Args, ask: Ask): Promise<string> {
  const parts = pathPartsOf(args, "path");
  const ref = textOf(args, "ref");
  const path = ["repos", ...repositoryOf(args), "contents", ...parts];
  const { data } = await ask({ path, query: ref === "" ? {} : { ref } });
  const name = parts.join("/");
  if (Array.isArray(data)) return folderText(name, data);
  const [type, encoding] = [label(data, "type"), label(data, "encoding")];
  if (type !== "file") return `${name} is a ${type || "thing"}, not a file.`;
  if (encoding !== "base64")
    throw new ApiFault(`${name} has ${label(data, "size")} bytes; only files of at most 1 MB can be read.`);
  return fileText(name, words(data, "content"));
}

function folderText(name: string, entries: unknown[]): string {
  const lines = entries
    .slice(0, MAX_LIST)
    .map((entry) => `- ${label(entry, "name")}${label(entry, "type") === "dir" ? "/" : ""}`);
  return listed(`Folder ${name || "/"}:`, lines, { total: entries.length, more: false });
}

async function listPullRequests(args: Args, ask: Ask): Promise<string> {
  const path = ["repos", ...repositoryOf(args), "pulls"];
  const { data, headers } = await ask({
    path,
    query: { ...PAGE, state: textOf(args, "state") || "open" },
  });
  const lines = listIn(data).map((one) => issueLine(one, NAMES));
  return listed("Pull requests, newest first:", lines, restOf(headers));
}

function repositoryOf(args: Args): string[] {
  return idOf(args, "repository", REPOSITORY).split("/");
}
