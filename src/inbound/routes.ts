import { Elysia } from "elysia";
import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { chunksOf, holdBody } from "../http/body.ts";
import { describe } from "../http/describe.ts";
import { clientAddress } from "../http/request.ts";
import { clientNetwork } from "../net/networks.ts";
import { createArrivals } from "../net/arrivals.ts";
import { takeRawMail } from "./raw-mail.ts";
import { MailTakenShape } from "./shapes.ts";
import { inboundSecret, readEnvelope, refuseUnsigned } from "./raw-mail-signature.ts";
import { MB } from "../lib/sizes.ts";

/** Above this size Bun closes the connection before anybody can say why. */
const MAX_REQUEST_BYTES = 63 * MB;
/** Memory for bodies whose sender is not known yet, as a number of mails of the largest size. */
const LARGEST_AT_ONCE = 8;
const RETRY_SECONDS = 10;

/** Takes mail over HTTP, for an operator who has a mail worker or another mail server in front. */
export function inboundRoutes(app: App) {
  const readMail = createBodyReader(Math.min(app.config.smtp.max_message_bytes, MAX_REQUEST_BYTES));
  return new Elysia()
    .onParse(({ request, server }) => {
      inboundSecret(app);
      return readMail(request, clientNetwork(clientAddress(app, { request, server })));
    })
    .post(
      "/inbound/raw",
      async ({ body, request }) => {
        // Without a body the request has not been parsed.
        const raw = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
        const fields = fieldsOf(request);
        refuseUnsigned(app, raw, fields);
        return { recipients: await takeRawMail(app, raw, readEnvelope(fields.envelope)) };
      },
      RAW,
    );
}

const RAW = describe({
  tag: "Server",
  summary: "Hand in a mail",
  description:
    "For a mail worker or another mail server, where port 25 cannot be reached: the mail goes the way of one that came over SMTP. 200 says what became of it for each recipient, and what is accepted is on disk. 413 says that it is too large; whatever else is answered, keep the mail and try again. See /docs/inbound.",
  bytes_body: { content_type: "message/rfc822", words: "The mail, with all of its header fields." },
  answers: { 200: MailTakenShape },
  errors: ["inbound_not_configured", "invalid_signature"],
  headers: {
    "Service-Envelope":
      "`mail_from=ann%40example.com&rcpt_to=desk%40example.org&remote_ip=192.0.2.7&helo=mx.example.com`. The first two are required; `mail_from` is empty for a bounce, and `rcpt_to` may be there up to 100 times. `remote_ip` is the client that brought the mail; without it SPF cannot be checked.",
    "Service-Signature":
      "`t=<unix time>,v1=<hex>`: the HMAC-SHA256 of `<t>.<Service-Envelope>.<mail>` with `inbound.secret`. It is good for 300 seconds.",
  },
  open: true,
});

function fieldsOf({ headers }: Request): { envelope: string; signature: string } {
  return {
    envelope: headers.get("service-envelope") ?? "",
    signature: headers.get("service-signature") ?? "",
  };
}

/**
 * Reads bodies within a bound on memory, as the SMTP listener does: anybody may send one before its signature can be
 * checked.
 */
function createBodyReader(cap: number): (request: Request, network: string) => Promise<Buffer> {
  const begin = createArrivals(LARGEST_AT_ONCE * cap);
  return async (request, network) => {
    const mail = begin(network);
    holdBody(request, mail);
    for await (const chunk of chunksOf(request, cap)) {
      mail.keep(chunk);
      if (mail.dropped) break;
    }
    if (!mail.dropped) return mail.take();
    throw new AppError("unavailable", "Too many large mails are coming in at once.", {
      fix: "Keep the mail, and hand it in again in a few seconds.",
      retry_after_seconds: RETRY_SECONDS,
    });
  };
}
