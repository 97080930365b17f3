import { createHash } from "node:crypto";

const STYLE =
  ":root{color-scheme:light dark;background:light-dark(#f7f8f8,#111615);color:light-dark(#16201f,#e7eceb)}body{margin:15vh auto;max-width:34rem;padding:0 1.5rem;font:1.05rem/1.6 system-ui,sans-serif}h1{font-size:1.6rem}a{color:light-dark(#0f766e,#4fc3b4)}";
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");
/** Nothing is loaded, run or sent from these pages; a refresh is no part of a policy. */
const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export interface CallbackPage {
  status: 200 | 400;
  title: string;
  message: string;
  /** Where the browser goes on to by itself; null where the person should read first. */
  onwards: string | null;
  /** The dashboard's list of connections. */
  back: string;
}

/** Every part is text: nothing in it becomes markup. */
export function pageResponse({ status, title, message, onwards, back }: CallbackPage): Response {
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
<h1>${text(title)}</h1>
<p>${text(message)}</p>
<p><a href="${text(onwards ?? back)}">Go to your connections</a></p>
</body>
</html>
`;
  return new Response(html, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": CONTENT_SECURITY_POLICY,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    },
  });
}
