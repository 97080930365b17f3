import { Elysia, t } from "elysia";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import { beginTrip } from "../accounts/trips.ts";
import type { App } from "../../app.ts";
import { authenticated, unauthenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { openCheckout, openTopup } from "./checkout.ts";
import { openPortal } from "./portal.ts";
import { takeEvent } from "./provider-events.ts";
import { EventTakenShape, HostedPageShape, UsageShape } from "./shapes.ts";
import { readUsage } from "./usage.ts";
import { momentParameter } from "../../http/shapes.ts";

const checkoutBody = t.Object(
  {
    plan: t.Optional(
      t.Union([t.Literal("pro"), t.Literal("team")], {
        description: "`pro` if left out.",
        examples: ["pro"],
      }),
    ),
    interval: t.Optional(
      t.Union([t.Literal("month"), t.Literal("year")], {
        description: "How often it is paid: by the `month` if left out.",
        examples: ["month"],
      }),
    ),
  },
  { additionalProperties: true },
);

const DESCRIBED = {
  checkout: describe({
    tag: "Billing",
    summary: "Subscribe to a plan",
    description:
      "Gives the address of the payment page, to send the browser to. For an account that has a subscription it is the page on which that moves to the other plan.",
    answers: { 200: HostedPageShape },
    errors: ["billing_not_configured", "already_subscribed"],
    optional_body: checkoutBody,
  }),
  topup: describe({
    tag: "Billing",
    summary: "Buy a pack of credits",
    description:
      "For paid plans. Such credits do not end with the month, and are spent once those of the plan are used up.",
    answers: { 200: HostedPageShape },
    errors: ["billing_not_configured", "plan_required"],
  }),
  portal: describe({
    tag: "Billing",
    summary: "Manage or cancel a subscription",
    description:
      "Gives the address of the page with the invoices, where the means of payment is changed and the subscription cancelled.",
    answers: { 200: HostedPageShape },
    errors: ["billing_not_configured", "no_billing_account"],
  }),
  webhook: describe({
    tag: "Billing",
    summary: "News from the payment provider",
    description: "For Stripe alone, whose signature it needs. Any event that is properly signed is fine.",
    answers: { 200: EventTakenShape },
    errors: ["billing_not_configured", "invalid_signature"],
    headers: { "Stripe-Signature": "The signature of the body, as it was sent." },
    open: true,
  }),
};

const USAGE = describe({
  tag: "Billing",
  summary: "What your runs came to",
  description:
    "Sums by day, source and inbox of the runs that ended as `done`, at most 366 days at once. Days are those of UTC, as the months of credits are. `storage` is what the account stores now, whatever the time asked for.",
  answers: { 200: UsageShape },
});

export function billingRoutes(app: App) {
  return new Elysia().use(providerRoutes(app)).use(usageRoutes(app)).use(paymentRoutes(app));
}

function usageRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/usage", ({ user, query }) => readUsage(app, user, query), {
      query: t.Object({
        since: momentParameter(
          "since",
          "Accepted at this moment or later, in unix seconds; by default 30 days before `until`.",
        ),
        until: momentParameter(
          "until",
          "Accepted at this moment or earlier, in unix seconds; by default now.",
        ),
      }),
      ...USAGE,
    });
}

function paymentRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/billing/checkout",
      ({ user, caller, body }) => {
        const { plan = "pro", interval = "month" } = body ?? {};
        return noted(app, caller, () => openCheckout(app, user, { plan, interval }));
      },
      { body: t.Nullable(checkoutBody), ...DESCRIBED.checkout },
    )
    .post(
      "/billing/topup",
      ({ user, caller }) => noted(app, caller, () => openTopup(app, user)),
      DESCRIBED.topup,
    )
    .post(
      "/billing/portal",
      ({ user, caller }) => noted(app, caller, () => openPortal(app, user)),
      DESCRIBED.portal,
    );
}

/** Notes in the security events who got the address of such a page: whoever has it may pay, or cancel. */
async function noted(
  app: App,
  caller: Caller,
  open: () => Promise<{ url: string }>,
): Promise<{ url: string }> {
  using _trip = await beginTrip(caller.user);
  const page = await open();
  await app.write((tx) => noteChange(app, tx, caller, "billing_opened"));
  return page;
}

function providerRoutes(app: App) {
  return new Elysia().use(unauthenticated(app)).post(
    "/billing/webhook",
    async ({ request, body }) => {
      await takeEvent(app, body as Uint8Array, request.headers.get("stripe-signature") ?? "");
      return { received: true as const };
    },
    DESCRIBED.webhook,
  );
}
