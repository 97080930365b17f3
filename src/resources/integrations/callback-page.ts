import { sha256 } from "../../lib/sha256.ts";

const STYLE =
  ":root{color-scheme:light dark;background:light-dark(#f7f8f8,#111615);color:light-dark(#16201f,#e7eceb)}body{margin:15vh auto;max-width:34rem;padding:0 1.5rem;font:1.05rem/1.6 system-ui,sans-serif;overflow-wrap:anywhere}h1{font-size:1.6rem;line-height:1.3}a{color:light-dark(#0f766e,#4fc3b4)}form{margin:1.5rem 0}button,.main{display:inline-block;box-sizing:border-box;padding:.5rem 1.1rem;border:0;border-radius:.375rem;background:light-dark(#0f766e,#4fc3b4);color:light-dark(#fff,#10211f);font:inherit;font-weight:600;text-decoration:none;cursor:pointer}";
const STYLE_HASH = sha256(STYLE, "base64");

export interface CallbackPage {
  status: 200 | 400;
  title: string;
  /** The text, a paragraph each. */
  messages: string[];
  /** The address that the browser goes to by itself; null where the person should read first. */
  onwards?: string | null;
  /** A button that sends these fields. */
  form?: { action: string; button: string; fields: Record<string, string> };
  /** A link that looks like a button. */
  main?: Link;
  link: Link;
}

interface Link {
  to: string;
  words: string;
}

/** The page as a response. All parts are text: nothing in them becomes markup. */
export function pageResponse(page: CallbackPage): Response {
  const { status, title, messages, onwards = null, form, main, link } = page;
  const text = Bun.escapeHTML;
  const refresh = onwards === null ? "" : `<meta http-equiv="refresh" content="1;url=${text(onwards)}">\n`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text(title)}</title>
<style>${STYLE}</style>
${refresh}</head>
<body>
<main>
<h1>${text(title)}</h1>
${messages.map((message) => `<p>${text(message)}</p>\n`).join("")}${form ? formOf(form) : ""}${main ? `<p>${linkOf(main, ' class="main"')}</p>\n` : ""}<p>${linkOf(link)}</p>
</main>
</body>
</html>
`;
  return new Response(html, { status, headers: headersOf(form !== undefined) });
}

function formOf({ action, button, fields }: NonNullable<CallbackPage["form"]>): string {
  const text = Bun.escapeHTML;
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${text(name)}" value="${text(value)}">\n`,
  );
  return `<form method="post" action="${text(action)}">
${hidden.join("")}<button type="submit">${text(button)}</button>
</form>
`;
}

function linkOf({ to, words }: Link, attributes = ""): string {
  return `<a${attributes} href="${Bun.escapeHTML(to)}">${Bun.escapeHTML(words)}</a>`;
}

/**
 * The headers of a page. It loads and runs nothing, and only its form is sent anywhere; a refresh is not subject to
 * the policy.
 */
function headersOf(sends: boolean): Record<string, string> {
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action ${sends ? "'self'" : "'none'"}; frame-ancestors 'none'`,
    "cache-control": "no-store",
    // Without a referrer a browser would call the origin of the form "null" (Fetch §3.2).
    "referrer-policy": sends ? "same-origin" : "no-referrer",
  };
}
