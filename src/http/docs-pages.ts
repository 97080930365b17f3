import { ERROR_CODES, type ErrorCode } from "../errors.ts";
import { assetUrl } from "./docs-assets.ts";
import { CATALOGUE, exampleProblem } from "./error-catalogue.ts";
import { STATUS, TITLES } from "./errors.ts";
import type { OpenApiDocument } from "./openapi.ts";

/**
 * The page with all operations, below the call that most people are here for. Their interactive reference is made of
 * /openapi.json once somebody asks for it: it keeps a browser busy for seconds.
 */
export async function referencePage(base_url: string, document: OpenApiDocument): Promise<string> {
  const [bundle, init, bundleStyle] = await Promise.all([
    assetUrl("swagger-ui-bundle.js"),
    assetUrl("init.js"),
    assetUrl("swagger-ui.css"),
  ]);
  return page({
    title: "Mailwright API",
    head: `<script defer src="${init}"></script>`,
    main: `${beginHere(base_url)}
<div id="operations" class="text" data-bundle="${bundle}" data-style="${bundleStyle}">
<h1>All operations</h1>
<noscript><p>With JavaScript they can be read in full, and tried out, on this page. Without it, read
<a href="/openapi.json">the OpenAPI document</a>.</p></noscript>
<p id="try" hidden>A click on one opens it, with all its members. <button type="button">Open all</button></p>
<p role="alert"></p>
${sectionsOf(document).join("\n")}
</div>`,
  });
}

const METHODS = ["get", "post", "put", "patch", "delete"];

/** The operations by their tags, each with the address at which the reference opens it. */
function sectionsOf({ tags, paths }: OpenApiDocument): string[] {
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method];
      return operation ? [{ path, method, operation }] : [];
    }),
  );
  return tags.map(({ name }) => {
    const items = all
      .filter(({ operation }) => (operation["tags"] as string[]).includes(name))
      .map(({ path, method, operation }) => {
        const to = `#/${encodeURIComponent(name)}/${String(operation["operationId"])}`;
        const words = Bun.escapeHTML(String(operation["summary"]));
        return `<li><a href="${to}"><code>${method.toUpperCase()} ${Bun.escapeHTML(path)}</code></a> ${words}</li>`;
      });
    return `<section><h2>${Bun.escapeHTML(name)}</h2><ul>${items.join("\n")}</ul></section>`;
  });
}

function beginHere(base_url: string): string {
  const example = `KEY=mw_live_…
curl -sS "${base_url}/v1/messages" \\
  -H "X-API-Key: $KEY" -H "Content-Type: application/json" \\
  -d '{"instruction": "When does it open?", "content": "It opens on 3 May."}'`;
  return `<div class="text begin">
<h1>Begin with one call</h1>
<p>${prose("`POST /v1/messages` does what a mail to your inbox does: it gives `instruction` to the model, `content` as the text to work on, and answers with the `result`. Make a key in the")} <a href="/app/settings">dashboard, under Settings</a>, ${prose("write it after `KEY=`, and paste this into a shell:")}</p>
<pre>${Bun.escapeHTML(example)}</pre>
<p>${prose("It runs through your default inbox; `inbox_id` names another one.")} <a href="#operations">All operations</a> are below.</p>
</div>`;
}

/** Returns the page to which the `type` of every error leads. */
export async function errorsPage(): Promise<string> {
  return page({
    title: "Errors of the Mailwright API",
    main: `<div class="text">
<h1>Errors</h1>
<p>Every error is answered as <code>application/problem+json</code>. <code>code</code> says what is wrong, for a program;
<code>detail</code> and <code>fix</code> say it in words; <code>request_id</code> leads to the entry in the server's log.</p>
<nav aria-label="All errors"><ul>
${ERROR_CODES.map(entry).join("\n")}
<li><a href="#credit_limit">Out of credits</a> <span>429</span></li>
</ul></nav>
${ERROR_CODES.map(section).join("\n")}
${CREDITS}
</div>`,
  });
}

/**
 * Out of credits is not problem+json: the answer has the shape of a call's, because the message is listed in the
 * activity like any other.
 */
const CREDITS = `<section id="credit_limit">
<h2><a href="#credit_limit">Out of credits</a></h2>
<p class="facts"><code>credit_limit</code> <span>status 429</span></p>
<p>A routing call over the credits of this period is answered like any other call, with <code>status</code> <code>limited</code> and
<code>code</code> <code>credit_limit</code>. Nothing was run and nothing was charged. There is no <code>Retry-After</code>: trying again soon does not help,
unless <code>error</code> says that the credits are held for messages that have not ended.</p>
<h3>What to do</h3>
<p><code>credits.resets_at</code> says when there are new credits. The operator of the server can give an account a larger plan.</p>
</section>`;

/** Returns a complete HTML page around its `main`. */
export async function page({
  title,
  head = "",
  main,
}: {
  title: string;
  head?: string;
  main: string;
}): Promise<string> {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${await assetUrl("style.css")}">
${head}
</head>
<body>
<header><strong>Mailwright</strong>
<a href="/docs">Reference</a>
<a href="/docs/webhooks">Webhooks</a>
<a href="/docs/inbound">Mail over HTTPS</a>
<a href="/docs/errors">Errors</a>
<a href="/openapi.json">openapi.json</a>
<a href="/app">Dashboard</a></header>
<main>
${main}
</main>
</body>
</html>
`;
}

function entry(code: ErrorCode): string {
  return `<li><a href="#${code}">${Bun.escapeHTML(TITLES[code])}</a> <span>${STATUS[code]}</span></li>`;
}

function section(code: ErrorCode): string {
  const { meaning, mend } = CATALOGUE[code];
  return `<section id="${code}">
<h2><a href="#${code}">${Bun.escapeHTML(TITLES[code])}</a></h2>
<p class="facts"><code>${code}</code> <span>status ${STATUS[code]}</span></p>
<p>${prose(meaning)}</p>
<h3>What to do</h3>
<p>${prose(mend)}</p>
<details><summary>Example</summary><pre>${Bun.escapeHTML(JSON.stringify(exampleProblem(code), null, 2))}</pre></details>
</section>`;
}

/** Returns escaped HTML; text between backquotes becomes code. */
export function prose(text: string): string {
  return Bun.escapeHTML(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}
