import { Elysia } from "elysia";
import type { App } from "../../app.ts";
import { unauthenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { clientAddress, refuseOverRate } from "../../http/request.ts";
import { clientNetwork } from "../../net/networks.ts";
import { checkedContact, contactReader, submitContact } from "./contacts.ts";
import { contactBody, ContactShape } from "./shapes.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

export function contactRoutes(app: App) {
  return new Elysia().use(unauthenticated(app)).post(
    "/contacts",
    async ({ request, server, body, set }) => {
      // The check comes before the limits, so that whoever filled in the form wrongly may try again.
      const contact = checkedContact(body, app.nowMs());
      const reader = await contactReader(app);
      const client = clientAddress(app, { request, server });
      refuseFlood(app, client);
      set.status = 201;
      return submitContact(app, contact, { reader, client });
    },
    {
      body: contactBody,
      ...describe({
        tag: "Contacts",
        summary: "Write to the operator of this server",
        description:
          "For a contact form. It is mailed to the administrator; nothing is mailed to the sender. While there is no administrator it is refused (503).",
        answers: { 201: ContactShape },
        errors: ["rate_limited"],
        open: true,
      }),
    },
  );
}

/** Throws `rate_limited` for too many submissions. All clients whose address is not known share one limit. */
function refuseFlood(app: App, client: string): void {
  const { contact_per_ip_hour, contact_per_ip_day } = app.config.limits;
  const network = clientNetwork(client);
  refuseOverRate(app, `contact-hour:${network}`, {
    limit: contact_per_ip_hour,
    window_seconds: HOUR_SECONDS,
  });
  refuseOverRate(app, `contact-day:${network}`, { limit: contact_per_ip_day, window_seconds: DAY_SECONDS });
}
