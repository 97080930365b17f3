import { Elysia, t } from "elysia";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import { administrators, authenticated, unauthenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverRate } from "../../http/request.ts";
import { AppError, invalid } from "../../errors.ts";
import { deleteDomain } from "../inboxes/leave-domain.ts";
import { verifyDomain } from "./check.ts";
import { createDomain, listDomains } from "./domains.ts";
import { mtaStsHost, policyShown } from "./own-mta-sts.ts";
import { viewServiceDns } from "./service-dns.ts";
import { CustomDomainShape, ServiceDnsShape } from "./shapes.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** The limit on new domains: each makes two keys, which is half a second of work. */
const CREATE_RATE = { limit: 60, window_seconds: HOUR_SECONDS };
/** The limit on checks: each asks the DNS for all records of a domain. */
const VERIFY_RATE = { limit: 10, window_seconds: 60 };
/** The limit on looking at the service's records: a page that waits for them looks four times a minute. */
const SERVICE_RATE = { limit: 20, window_seconds: 60 };
/** The longest input: more than the longest domain has, so that what is wrong with it is said in words. */
const MAX_NAME_CHARS = 1_000;

const domain = t.Optional(t.String({ maxLength: MAX_NAME_CHARS, examples: ["example.org"] }));
const name = t.Optional(t.String({ maxLength: MAX_NAME_CHARS, description: "Another word for domain." }));
const domainParams = t.Object({ domain_id: t.String({ format: "uuid" }) });

export function domainRoutes(app: App) {
  return new Elysia().use(ownDomainRoutes(app)).use(serviceDnsRoutes(app));
}

function ownDomainRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/custom-domains", ({ user }) => listDomains(app, user), LIST)
    .post(
      "/custom-domains",
      async ({ user, caller, body, set }) => {
        const wanted = body.domain ?? body.name;
        if (wanted === undefined) throw invalid("body.domain", "missing", "body.domain is required.");
        refuseOverRate(app, `domains:${user.id}`, CREATE_RATE);
        set.status = 201;
        return createDomain(app, caller, wanted);
      },
      { body: t.Object({ domain, name }), ...CREATE },
    )
    .post(
      "/custom-domains/:domain_id/verify",
      async ({ user, params }) => {
        refuseOverRate(app, `verify:${user.id}:${params.domain_id}`, VERIFY_RATE);
        using _trip = await beginTrip(user);
        return await verifyDomain(app, user, params.domain_id);
      },
      { params: domainParams, ...VERIFY },
    )
    .delete(
      "/custom-domains/:domain_id",
      async ({ caller, params, set }) => {
        await deleteDomain(app, caller, params.domain_id);
        set.status = 204;
      },
      { params: domainParams, ...DELETE },
    );
}

/** The routes about the service's domain, which all inboxes have that have none of their own. */
function serviceDnsRoutes(app: App) {
  return new Elysia().use(administrators(app)).get(
    "/admin/dns",
    ({ user }) => {
      refuseOverRate(app, `dns:${user.id}`, SERVICE_RATE);
      return viewServiceDns(app);
    },
    SERVICE_DNS,
  );
}

/** The policy for other mail servers, which ask for it at the name that RFC 8461 §3.3 makes of our domain. */
export function mtaStsRoutes(app: App) {
  return new Elysia().use(unauthenticated(app)).get(
    "/.well-known/mta-sts.txt",
    async ({ request, set }) => {
      const host = new URL(request.url).hostname;
      const policy = host === mtaStsHost(app.config) ? await policyShown(app) : null;
      if (policy === null) throw new AppError("not_found", `There is no policy for ${host}.`);
      set.headers["content-type"] = "text/plain";
      return policy;
    },
    MTA_STS,
  );
}

const LIST = describe({
  tag: "Custom domains",
  summary: "Your domains, with the DNS records to publish",
  answers: { 200: t.Array(CustomDomainShape) },
});

const CREATE = describe({
  tag: "Custom domains",
  summary: "Add a domain",
  description:
    "`domain` is required; `name` is another word for it. The answer lists the records to publish. They are looked for every ten minutes for a week, and at once by `verify`.",
  answers: { 201: CustomDomainShape },
  errors: ["conflict", "plan_limit_reached"],
});

const VERIFY = describe({
  tag: "Custom domains",
  summary: "Look for the records of a domain now",
  description:
    "Answers 200 whatever the DNS says: each record has a status and a reason. 409 only when the records are right and the domain is active in another account.",
  answers: { 200: CustomDomainShape },
  errors: ["conflict"],
});

const SERVICE_DNS = describe({
  tag: "Administration",
  summary: "What to publish for the server's own domain, and what the DNS shows of it now",
  description: "As `mailwright dns check`. Answers 200 whatever the DNS says: each record has its verdict.",
  answers: { 200: ServiceDnsShape },
  errors: ["admin_required"],
});

const MTA_STS = describe({
  tag: "Server",
  summary: "How other mail servers are to use TLS on their way here (MTA-STS)",
  description: "Answers at `mta-sts.` and the domain of the server, if `smtp.mta_sts` is set.",
  answers: { 200: { content_type: "text/plain", words: "The policy, as in RFC 8461 §3.2." } },
  errors: ["not_found"],
  open: true,
});

const DELETE = describe({
  tag: "Custom domains",
  summary: "Remove a domain",
  description:
    "Its inboxes go on under the domain of the server, with the same local part where it is free. Mail to the old addresses is refused.",
  answers: { 204: null },
});
