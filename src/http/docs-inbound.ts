import { page, prose } from "./docs-pages.ts";
import pipe from "./snippets/inbound-pipe.sh" with { type: "text" };
import worker from "./snippets/inbound-worker.mjs.txt" with { type: "text" };

const MASTER_CF = `mailwright unix - n n - 10 pipe
  flags=hq user=nobody null_sender= argv=/usr/local/bin/inbound-pipe.sh \${sender} \${client_address} \${client_helo} \${recipient}`;
const MAIN_CF = `transport_maps = inline:{ai.example.org=mailwright:}
mailwright_destination_recipient_limit = 1`;

/** Returns the page on how mail comes in without port 25. */
export async function inboundPage(): Promise<string> {
  return page({
    title: "Mail over HTTPS for Mailwright",
    main: `<div class="text">
<h1>Mail over HTTPS</h1>
<p>${prose("Where nobody can reach port 25 of this server, something that gets the mail can hand it in: `POST /inbound/raw` with the mail as it is, byte for byte. It is judged, stored and worked on like one that came over SMTP.")}</p>
<nav aria-label="On this page"><ul>
<li><a href="#request">The request</a></li>
<li><a href="#answer">The answer</a></li>
<li><a href="#identity">Who wrote it?</a></li>
<li><a href="#worker">A mail worker</a></li>
<li><a href="#postfix">Postfix</a></li>
</ul></nav>
<section id="request">
<h2><a href="#request">The request</a></h2>
<p>${prose("The operator sets `inbound.secret`. Two headers go with the mail:")}</p>
<dl>
<dt><code>Service-Envelope</code></dt><dd>${prose("`mail_from`, `rcpt_to` (once for each recipient), `remote_ip` and `helo`, encoded like a form: `mail_from=ann%40example.com&rcpt_to=desk%40example.org`. The first two are required; `mail_from=` is the empty sender of a bounce.")}</dd>
<dt><code>Service-Signature</code></dt><dd>${prose("`t=1768478400,v1=…`: the unix time, and in hexadecimal the HMAC-SHA256 of that time, a full stop, the envelope as it is sent, another full stop, and the mail. Its key is the secret. It is good for 300 seconds.")}</dd>
</dl>
<p>${prose("To see whether your own code is right: with the secret `inbound_test`, the time 1700000000, the envelope `mail_from=&rcpt_to=a%40b.test` and the mail `Hi` the signature is `82afa0cae2f59e266fd5bed987f6ef8e38240bbf2940123c05b8ade4a11ea76b`.")}</p>
</section>
<section id="answer">
<h2><a href="#answer">The answer</a></h2>
<p>${prose("200 has one entry in `recipients` for each of them. `accepted` means that the mail is on disk; `refused` with a `code` of 500 or more, that it will never be taken, and that its sender should hear `text`. `refused` with a `code` below 500 is only put off, as when the inbox has had its mails of the hour: hand the mail in again later, for that recipient alone. Anything but 200 means that nothing was kept: keep the mail and try again, after `Retry-After` seconds where that is given. Only 413 stays as it is: the mail is larger than `smtp.max_message_bytes`. The same mail twice does no harm.")}</p>
</section>
<section id="identity">
<h2><a href="#identity">Who wrote it?</a></h2>
<p>${prose("The sender is checked by DKIM, SPF and DMARC as over SMTP. SPF needs `remote_ip`, the address that connected to your server or worker. Where you do not know it, leave it out: signed mail is recognised all the same. If your provider seals what it passes on (ARC), the operator can name it in `smtp.arc_sealers`.")}</p>
</section>
<section id="worker">
<h2><a href="#worker">A mail worker</a></h2>
<pre>${Bun.escapeHTML(worker)}</pre>
</section>
<section id="postfix">
<h2><a href="#postfix">Postfix</a></h2>
<p>${prose("As `/usr/local/bin/inbound-pipe.sh`, which needs `curl` and `openssl`:")}</p>
<pre>${Bun.escapeHTML(pipe)}</pre>
<p>${prose("In `master.cf`:")}</p>
<pre>${Bun.escapeHTML(MASTER_CF)}</pre>
<p>${prose("In `main.cf`, for the mail of `ai.example.org`:")}</p>
<pre>${Bun.escapeHTML(MAIN_CF)}</pre>
</section>
</div>`,
  });
}
