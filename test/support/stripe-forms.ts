import type { ApiCall } from "./api-stand-in.ts";

/** Parameters as they are sent: `items[0][price]`. */
export type Form = Record<string, string>;

/** What each request takes; ids in the path are `:id`, places in a list `[]`. */
export const STRIPE_FORMS: Record<string, string[]> = {
  "POST /v1/customers": ["email", "name", "metadata[user_id]"],
  "GET /v1/customers/:id": [],
  "DELETE /v1/customers/:id": [],
  "GET /v1/subscriptions": ["customer", "status", "limit"],
  "DELETE /v1/subscriptions/:id": [],
  "GET /v1/checkout/sessions": [
    "customer",
    "status",
    "payment_intent",
    "created[gte]",
    "starting_after",
    "limit",
    "expand[]",
  ],
  "GET /v1/disputes": ["charge", "limit"],
  "GET /v1/events": ["types[]", "created[gte]", "starting_after", "limit"],
  "GET /v1/checkout/sessions/:id": ["expand[]"],
  "POST /v1/checkout/sessions/:id/expire": [],
  "POST /v1/checkout/sessions": [
    "mode",
    "customer",
    "client_reference_id",
    "line_items[][price]",
    "line_items[][quantity]",
    "subscription_data[metadata][user_id]",
    "metadata[topup_credits]",
    "success_url",
    "cancel_url",
  ],
  "POST /v1/billing_portal/sessions": [
    "customer",
    "return_url",
    "flow_data[type]",
    "flow_data[subscription_update_confirm][subscription]",
    "flow_data[subscription_update_confirm][items][][id]",
    "flow_data[subscription_update_confirm][items][][price]",
    "flow_data[subscription_update_confirm][items][][quantity]",
  ],
};

export function readForm({ query, body }: ApiCall): Form {
  return { ...query, ...Object.fromEntries(new URLSearchParams(String(body ?? ""))) };
}

/** The first parameter that the request does not take; all of them where there is no such request. */
export function unknownParameter(forms: Record<string, string[]>, call: ApiCall): string | undefined {
  const known = forms[`${call.method} ${call.path.replace(/\/\w+_\w*\d{8}/, "/:id")}`];
  const names = Object.keys(readForm(call));
  return names.find((name) => !known?.includes(name.replaceAll(/\[\d+\]/g, "[]")));
}
