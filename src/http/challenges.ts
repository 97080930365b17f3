import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { listenFault } from "../lib/start-faults.ts";
import { fullText } from "../errors.ts";
import { certificateNames } from "../tls/names.ts";
import { answerWithoutHost } from "./request.ts";

const PREFIX = "/.well-known/acme-challenge/";
const MAX_REQUEST_BYTES = 65_536;
const IDLE_SECONDS = 10;
const RETRY_MS = 60_000;

/**
 * Answers an HTTP-01 challenge, by which a certificate authority checks that a name is ours (RFC 8555 §8.3); undefined
 * for any other request.
 */
export function challengeAnswer({ certificates }: App, request: Request): Response | undefined {
  if (certificates.challenges.size === 0) return undefined;
  const { pathname } = new URL(request.url);
  const answer = pathname.startsWith(PREFIX)
    ? certificates.challenges.get(pathname.slice(PREFIX.length))
    : undefined;
  if (answer === undefined) return undefined;
  return new Response(answer, { headers: { "content-type": "application/octet-stream" } });
}

/**
 * Opens `acme.listen`: answers challenges and redirects everything else to https. If the port is taken or not allowed,
 * logs that and retries, while the server runs on.
 */
export function openChallengeDoor(app: App): AsyncDisposable {
  const { listen: value } = app.config.acme;
  const listen = splitListen(value);
  let server: Bun.Server<undefined> | undefined;
  let timer: Timer | undefined;
  let told = false;
  const open = (): void => {
    if (!listen) return;
    try {
      server = Bun.serve({
        hostname: listen.host,
        port: listen.port,
        maxRequestBodySize: MAX_REQUEST_BYTES,
        idleTimeout: IDLE_SECONDS,
        development: false,
        fetch: (request) =>
          answerWithoutHost(request) ?? challengeAnswer(app, request) ?? toHttps(app, request),
      });
    } catch (error) {
      if (!told) app.log.error(fullText(listenFault(error, { setting: "acme.listen", value })));
      told = true;
      timer = setTimeout(open, RETRY_MS);
    }
  };
  if (app.config.server.tls === "acme") open();
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await server?.stop(true);
    },
  };
}

/** Redirects to https, at a host of ours only: the host in the request may be anybody's. */
function toHttps(app: App, request: Request): Response {
  const { pathname, search } = new URL(request.url);
  if (pathname.startsWith(PREFIX)) return new Response("There is no such challenge.\n", { status: 404 });
  const { base_url } = app.config.server;
  const origin = base_url.startsWith("https:") ? base_url : `https://${certificateNames(app.config)[0]}`;
  const permanent = request.method === "GET" || request.method === "HEAD" ? 301 : 308;
  return new Response(null, { status: permanent, headers: { location: `${origin}${pathname}${search}` } });
}
