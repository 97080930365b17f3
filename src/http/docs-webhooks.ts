import type { Config } from "../config/config.ts";
import { spansInWords, spanWords } from "../lib/durations.ts";
import { page, prose } from "./docs-pages.ts";
import go from "./snippets/webhook.go" with { type: "text" };
import node from "./snippets/webhook.mjs.txt" with { type: "text" };
import php from "./snippets/webhook.php" with { type: "text" };
import python from "./snippets/webhook.py" with { type: "text" };
import shell from "./snippets/webhook.sh" with { type: "text" };

const SNIPPETS = [
  { id: "node", title: "Node.js and Bun", code: node },
  { id: "python", title: "Python", code: python },
  { id: "go", title: "Go", code: go },
  { id: "php", title: "PHP", code: php },
  { id: "openssl", title: "A shell with openssl, to check by hand", code: shell },
];

const TYPES = [
  ["message.received", "A mail was accepted. The work on it has not begun."],
  [
    "message.completed",
    "A run is done. If its answer goes out by mail, the first attempt to send it has been made.",
  ],
  ["message.failed", "A run failed, or its mail was refused; `error` says why."],
  [
    "message.skipped",
    "Nothing was run: a rule left the mail out, or, with the status `limited`, the credits or a monthly budget are used up.",
  ],
];

const HEADERS = [
  ["Service-Event-Id", "The id of the event: the same at every endpoint and at every attempt."],
  ["Service-Event-Type", "Its type."],
  ["Service-Signature", "`t=1768478400,v1=5257a8…`: when this attempt was signed, and the signature."],
  ["Service-Delivery-Attempt", "1 for the first attempt, then 2 and so on."],
];

const EXAMPLE = {
  id: "evt_01kf0q8v7mfz5s3x2c9d4b6h1n",
  type: "message.completed",
  created: 1_768_478_400,
  livemode: true,
  data: {
    object: {
      message_id: "0198c0ff-ee00-7000-8000-00000000cafe",
      conversation_id: "0198c0ff-ee00-7000-8000-00000000beef",
      source: "email",
      status: "done",
      result: "Three points matter: …",
      error: null,
      usage: { input_tokens: 812, output_tokens: 96 },
      subject: "Minutes of Monday",
      created: 1_768_478_391,
      inbox_id: "0198c0ff-ee00-7000-8000-00000000f00d",
      sender: "ada@example.com",
      tags: ["minutes"],
      attachments: [],
      metadata: {},
    },
  },
};

/** Returns the page on how to receive events and verify their signatures. */
export async function webhooksPage(settings: Config["webhooks"]): Promise<string> {
  return page({
    title: "Webhooks of Mailwright",
    main: `<div class="text">
<h1>Webhooks</h1>
<p>${prose("An endpoint is an https address of yours that is told what became of each message. Make one with `POST /v1/webhooks`, keep the `secret` of the answer, and try it with `POST /v1/webhooks/{id}/test`.")}</p>
<nav aria-label="On this page"><ul>
<li><a href="#events">Events</a></li>
<li><a href="#signature">Is it genuine?</a></li>
${SNIPPETS.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`).join("\n")}
<li><a href="#deliveries">Deliveries</a></li>
<li><a href="#secret">A new secret</a></li>
</ul></nav>
${EVENTS}
${SIGNATURE}
${SNIPPETS.map(snippet).join("\n")}
${deliveriesSection(settings)}
${SECRET}
</div>`,
  });
}

const EVENTS = section(
  "events",
  "Events",
  `${terms(TYPES)}
<p>${prose("Each is a POST of JSON. `data.object` is the message, in the words of `POST /v1/messages`. Of a `result` only the first 200,000 characters are sent, and then `result_truncated` is true. `sender` is the address that the mail names, proven or not; `tags` are the `#tags` of the instruction and the `+tag` of the address, and empty for mail of strangers; `attachments` are the files that the run made, each with the path of its download. `livemode` is false for tests.")}</p>
<pre>${Bun.escapeHTML(JSON.stringify(EXAMPLE, null, 2))}</pre>
<p>These headers go with it:</p>
${terms(HEADERS)}`,
);

const SIGNATURE = section(
  "signature",
  "Is it genuine?",
  `<p>${prose("Anybody can send something to your address. What comes from here is signed: `v1` is the HMAC-SHA256, in hexadecimal, of `t`, a full stop and the body, and its key is the whole secret with its `whsec_`.")}</p>
<ul>
<li>Use the body as it came in, byte for byte. Once it has been parsed and written again, it is another one.</li>
<li>Compare in constant time, as the programs below do: a comparison that stops at the first difference tells how much was right.</li>
<li>${prose("Refuse what was signed more than 300 seconds ago, so that nobody can send an old event again. Your clock must be right.")}</li>
<li>${prose("There may be several `v1`. One that fits is enough.")}</li>
</ul>
<p>${prose("The programs below take the body, the header `Service-Signature` and the secret.")}</p>
<p>${prose("Libraries for Standard Webhooks work too: every delivery has `webhook-id`, `webhook-timestamp` and `webhook-signature` as well.")}</p>
<p>${prose('To see whether your own code is right: with the secret `whsec_test`, `t` 1700000000 and the body `{"id":"evt_1"}` the signature is `c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925`.')}</p>`,
);

function deliveriesSection({ backoff, timeout_seconds, disable_after }: Config["webhooks"]): string {
  const answer = `Answer with any status from 200 to 299 within ${spanWords(timeout_seconds)}, and do the work afterwards. Redirects are not followed.`;
  const [, ...waits] = backoff;
  const again =
    waits.length === 0
      ? "Anything else has failed; it is not tried again."
      : `Anything else is tried again: after ${spansInWords(waits)}, ${backoff.length} attempts in all.`;
  const more =
    "Only where a connection that was kept open ends before the answer, the next attempt is made at once, over a new one. A `Retry-After` of a 429 or 503 is heeded.";
  return section(
    "deliveries",
    "Deliveries",
    `<p>${prose(`${answer} ${again} ${more}`)}</p>
<p>${prose("An event may come twice, and later ones may come before earlier ones: remember the ids that you have dealt with, which stay the same in every attempt, and go by `created` where the order matters.")}</p>
<p>${prose(`${disabling(disable_after)} \`GET /v1/webhooks/{id}/deliveries\` shows what was sent, and what was answered.`)}</p>`,
  );
}

function disabling(disable_after: number): string {
  if (disable_after === 0) return "However many deliveries fail, the endpoint stays switched on.";
  return `After ${disable_after} deliveries in a row that failed at every attempt, the endpoint is switched off and you get a mail. \`PATCH\` it with \`enabled: true\`, and fetch what was missed with \`POST /v1/webhooks/{id}/replay\`.`;
}

const SECRET = section(
  "secret",
  "A new secret",
  `<p>${prose("`POST /v1/webhooks/{id}/rotate-secret` makes one. For 24 hours the old one signs as well, so nothing is lost while you change it in your program.")}</p>`,
);

function snippet({ id, title, code }: (typeof SNIPPETS)[number]): string {
  return section(id, title, `<pre>${Bun.escapeHTML(code)}</pre>`);
}

function section(id: string, title: string, inner: string): string {
  return `<section id="${id}">
<h2><a href="#${id}">${title}</a></h2>
${inner}
</section>`;
}

function terms(entries: string[][]): string {
  const items = entries.map(
    ([name = "", words = ""]) => `<dt><code>${name}</code></dt><dd>${prose(words)}</dd>`,
  );
  return `<dl>${items.join("\n")}</dl>`;
}
