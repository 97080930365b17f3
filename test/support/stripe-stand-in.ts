import { createHmac } from "node:crypto";
import { type ApiCall, type StandIn, startStandIn } from "./api-stand-in.ts";
import { type Form, readForm, STRIPE_FORMS, unknownParameter } from "./stripe-forms.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";

export const STRIPE_KEY = "sk_test_51Secretsecretsecret";
export const STRIPE_WEBHOOK_SECRET = "whsec_Secretsecretsecret";
export const PRICES = {
  price_pro_month: "price_ProMonth",
  price_pro_year: "price_ProYear",
  price_team_month: "price_TeamMonth",
  price_team_year: "price_TeamYear",
  price_topup: "price_Topup",
};
const PACK_CENTS = 1_000;

export interface Subscription {
  id: string;
  customer: string;
  status: string;
  cancel_at_period_end: boolean;
  cancel_at: number | null;
  metadata: Record<string, string>;
  items: { object: "list"; data: SubscriptionItem[]; has_more: false };
}

interface SubscriptionItem {
  id: string;
  price: { id: string; recurring: { interval: string } };
  current_period_start: number;
  current_period_end: number;
}

export interface Session {
  id: string;
  created: number;
  customer: string;
  mode: string;
  status: string;
  payment_status: string;
  payment_intent: string | null;
  subscription: string | null;
  metadata: Record<string, string>;
  /** The metadata of the subscription that is begun on it. */
  subscription_metadata: Record<string, string>;
  url: string | null;
  price: string;
}

interface Charge {
  id: string;
  customer: string;
  payment_intent: string;
  amount: number;
  amount_refunded: number;
  disputed: boolean;
}

interface Dispute {
  id: string;
  charge: string;
  payment_intent: string;
  amount: number;
  status: string;
}

export interface StripeEvent {
  id: string;
  type: string;
  created: number;
  data: { object: object };
}

export interface StripeStandIn extends AsyncDisposable {
  calls: ApiCall[];
  /** Answers before the stand-in does. */
  first: StandIn["first"];
  /** For `testApp`. */
  config: {
    billing: {
      stripe_secret_key: string;
      stripe_webhook_secret: string;
      stripe_api_base: string;
    } & typeof PRICES;
    egress: { allow: string[] };
  };
  subscriptions: Subscription[];
  sessions: Session[];
  customers: { id: string; email: string; deleted: boolean }[];
  /** Pays on a page that `POST /billing/checkout` or `topup` gave, and gives the events of it in order. */
  pay(url: string, payment_status?: "paid" | "unpaid"): StripeEvent[];
  /** Changes a subscription as somebody does on a page of Stripe. */
  change(
    subscription: Subscription,
    change: Partial<Omit<Subscription, "items">> & { price?: string },
  ): StripeEvent;
  /** Another price with a period that begins now, as another interval has it. */
  restart(subscription: Subscription, price: string): StripeEvent;
  /** The next period, paid. */
  renew(subscription: Subscription): StripeEvent[];
  /** Returns a part of what was paid on a page. */
  refund(url: string, cents: number): StripeEvent;
  /** Has the bank of who paid on a page say that all of it is disputed, or how that ended. */
  dispute(url: string, status: string): StripeEvent;
  event(type: string, object: object): StripeEvent;
  /** As Stripe sends it. */
  signed(event: object | string, options?: { secret?: string; at?: number }): RequestInit;
}

/** Speaks the part of Stripe's interface that is used here, with its ids, its errors and its signatures. */
export function startStripe(now: () => number): StripeStandIn {
  const world = createWorld(now);
  const answered = new Map<string, { asked: string; answer: Answer }>();
  const server = startStandIn((call) => {
    const refusal = refusalOf(call);
    if (refusal) return refusal;
    const form = readForm(call);
    const key = call.headers["idempotency-key"];
    const known = key === undefined ? undefined : answered.get(key);
    const asked = `${call.path} ${JSON.stringify(form)}`;
    if (known && known.asked !== asked) return refuse(400, { type: "idempotency_error" });
    const answer = known?.answer ?? answerOf(world, call, form);
    if (key !== undefined) answered.set(key, { asked, answer });
    return Response.json(answer.body, { status: answer.status, headers: { "request-id": "req_StandIn" } });
  });
  return {
    ...pagesOf(world),
    get calls() {
      return server.calls;
    },
    get first() {
      return server.first;
    },
    set first(handler) {
      server.first = handler;
    },
    config: {
      billing: {
        stripe_secret_key: STRIPE_KEY,
        stripe_webhook_secret: STRIPE_WEBHOOK_SECRET,
        stripe_api_base: server.origin,
        ...PRICES,
      },
      egress: { allow: ["127.0.0.1"] },
    },
    subscriptions: world.subscriptions,
    sessions: world.sessions,
    customers: world.customers,
    event: world.event,
    signed: (event, options) => signed(event, { at: now(), secret: STRIPE_WEBHOOK_SECRET, ...options }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

interface World {
  now: () => number;
  id: (prefix: string) => string;
  customers: { id: string; email: string; deleted: boolean }[];
  subscriptions: Subscription[];
  sessions: Session[];
  charges: Charge[];
  disputes: Dispute[];
  events: StripeEvent[];
  event: (type: string, object: object) => StripeEvent;
}

function createWorld(now: () => number): World {
  let count = 0;
  const id = (prefix: string): string => `${prefix}_${(++count).toString().padStart(8, "0")}`;
  const events: StripeEvent[] = [];
  return {
    now,
    id,
    customers: [],
    subscriptions: [],
    sessions: [],
    charges: [],
    disputes: [],
    events,
    event: (type, object) => {
      const event = structuredClone({
        id: id("evt"),
        object: "event",
        api_version: "2020-08-27",
        created: now(),
        livemode: false,
        pending_webhooks: 1,
        request: null,
        type,
        data: { object },
      });
      events.push(event);
      return event;
    },
  };
}

function pagesOf(
  world: World,
): Pick<StripeStandIn, "pay" | "change" | "restart" | "renew" | "refund" | "dispute"> {
  const sessionAt = (url: string): Session => {
    const session = world.sessions.find((one) => one.url === url);
    if (session?.status !== "open") throw new Error(`Nobody can pay at ${url}`);
    return session;
  };
  const chargeAt = (url: string): Charge => {
    const session = world.sessions.find((one) => one.url === url);
    const charge = world.charges.find((one) => one.payment_intent === session?.payment_intent);
    if (!charge) throw new Error(`Nothing was paid at ${url}`);
    return charge;
  };
  return {
    pay(url, payment_status = "paid") {
      const session = sessionAt(url);
      Object.assign(session, { status: "complete", payment_status });
      return session.mode === "payment" ? payPack(world, session) : subscribe(world, session);
    },
    change(subscription, { price, ...change }) {
      Object.assign(subscription, change);
      const [item] = subscription.items.data;
      if (item && price !== undefined) item.price = priceOf(price);
      const ended = subscription.status === "canceled";
      return world.event(`customer.subscription.${ended ? "deleted" : "updated"}`, subscription);
    },
    restart(subscription, price) {
      for (const item of subscription.items.data) {
        item.price = priceOf(price);
        item.current_period_start = world.now();
        item.current_period_end = endOf(item.price.recurring.interval, world.now());
      }
      return world.event("customer.subscription.updated", subscription);
    },
    renew(subscription) {
      for (const item of subscription.items.data) {
        item.current_period_start = item.current_period_end;
        item.current_period_end = endOf(item.price.recurring.interval, item.current_period_start);
      }
      const { customer } = subscription;
      return [
        world.event("customer.subscription.updated", subscription),
        world.event("invoice.paid", { id: world.id("in"), object: "invoice", customer }),
      ];
    },
    refund(url, cents) {
      const charge = chargeAt(url);
      charge.amount_refunded += cents;
      return world.event("charge.refunded", charge);
    },
    dispute(url, status) {
      const charge = chargeAt(url);
      const { id, payment_intent, amount } = charge;
      const known = world.disputes.find((one) => one.charge === id);
      const dispute = known ?? { id: world.id("du"), charge: id, payment_intent, amount, status };
      if (!known) world.disputes.push(dispute);
      Object.assign(charge, { disputed: true });
      Object.assign(dispute, { object: "dispute", status });
      return world.event(`charge.dispute.${known ? "closed" : "created"}`, dispute);
    },
  };
}

function subscribe(world: World, session: Session): StripeEvent[] {
  const interval = priceOf(session.price).recurring.interval;
  const current_period_start = world.now();
  const subscription: Subscription = {
    id: world.id("sub"),
    customer: session.customer,
    status: "active",
    cancel_at_period_end: false,
    cancel_at: null,
    metadata: session.subscription_metadata,
    items: {
      object: "list",
      data: [
        {
          id: world.id("si"),
          price: priceOf(session.price),
          current_period_start,
          current_period_end: endOf(interval, current_period_start),
        },
      ],
      has_more: false,
    },
  };
  world.subscriptions.unshift(subscription);
  session.subscription = subscription.id;
  return [
    world.event("checkout.session.completed", session),
    world.event("customer.subscription.created", subscription),
    world.event("invoice.paid", { id: world.id("in"), object: "invoice", customer: session.customer }),
  ];
}

function payPack(world: World, session: Session): StripeEvent[] {
  const { customer } = session;
  const payment_intent = world.id("pi");
  session.payment_intent = payment_intent;
  const charge = { id: world.id("ch"), object: "charge", customer, payment_intent };
  world.charges.push({ ...charge, amount: PACK_CENTS, amount_refunded: 0, disputed: false });
  return [world.event("checkout.session.completed", session)];
}

function endOf(interval: string, start: number): number {
  return start + (interval === "year" ? 365 : 30) * DAY_SECONDS;
}

function priceOf(id: string): SubscriptionItem["price"] {
  return { id, recurring: { interval: /year/i.test(id) ? "year" : "month" } };
}

interface Answer {
  status: number;
  body: object;
}

function answerOf(world: World, call: ApiCall, form: Form): Answer {
  const [, , first = "", second = "", third] = call.path.split("/");
  const place = `${call.method} ${first === "checkout" || first === "billing_portal" ? `${first}/${second}` : first}`;
  const id = place.includes("/") ? third : second;
  const customer = world.customers.find((one) => one.id === form["customer"]);
  if (form["customer"] !== undefined && (!customer || customer.deleted))
    return missing("customer", form["customer"]);
  const handler = PLACES[place];
  return handler === undefined ? missing("url", call.path) : handler(world, form, id || undefined);
}

const PLACES: Record<string, (world: World, form: Form, id: string | undefined) => Answer> = {
  "POST customers": (world, form) => {
    const customer = { id: world.id("cus"), object: "customer", email: form["email"] ?? "", deleted: false };
    world.customers.push(customer);
    return ok(customer);
  },
  "GET customers": (world, _form, id) => {
    const customer = world.customers.find((one) => one.id === id);
    if (!customer) return missing("id", id);
    return ok(customer.deleted ? { id, object: "customer", deleted: true } : customer);
  },
  "DELETE customers": (world, _form, id) => {
    const customer = world.customers.find((one) => one.id === id && !one.deleted);
    if (!customer) return missing("id", id);
    customer.deleted = true;
    for (const one of world.subscriptions) if (one.customer === id) one.status = "canceled";
    return ok({ id, object: "customer", deleted: true });
  },
  "GET subscriptions": (world, form) =>
    list(world.subscriptions.filter(({ customer }) => customer === form["customer"])),
  "DELETE subscriptions": (world, _form, id) => {
    const subscription = world.subscriptions.find((one) => one.id === id && one.status !== "canceled");
    if (!subscription) return missing("id", id);
    subscription.status = "canceled";
    return ok(subscription);
  },
  "POST checkout/sessions": (world, form, id) => {
    if (id !== undefined) return expire(world, id);
    const price = form["line_items[0][price]"] ?? "";
    if (!Object.values(PRICES).includes(price)) return missing("line_items[0][price]", price);
    const session: Session = newSession(world, form, price);
    world.sessions.push(session);
    return ok(session);
  },
  "GET checkout/sessions": (world, form, id) => {
    const shown = (session: Session) => withCharge(world, session, Object.values(form));
    if (id !== undefined) {
      const session = world.sessions.find((one) => one.id === id);
      return session ? ok(shown(session)) : missing("session", id);
    }
    const wanted = ["customer", "status", "payment_intent"] as const;
    const found = world.sessions.filter((one) =>
      wanted.every((name) => form[name] === undefined || form[name] === one[name]),
    );
    return page(found.filter(({ created }) => created >= Number(form["created[gte]"] ?? 0)).map(shown), form);
  },
  "GET disputes": (world, form) => list(world.disputes.filter(({ charge }) => charge === form["charge"])),
  "GET events": ({ events }, form) => {
    const types = new Set(
      Object.entries(form).map(([name, value]) => (name.startsWith("types[") ? value : "")),
    );
    const since = Number(form["created[gte]"] ?? 0);
    return page(
      events.filter(({ type, created }) => types.has(type) && created >= since),
      form,
    );
  },
  "POST billing_portal/sessions": (world, form) => {
    const subscription = form["flow_data[subscription_update_confirm][subscription]"];
    if (subscription !== undefined && !world.subscriptions.some(({ id }) => id === subscription))
      return missing("subscription", subscription);
    const id = world.id("bps");
    return ok({ id, object: "billing_portal.session", url: `https://billing.stripe.com/p/session/${id}` });
  },
};

function newSession(world: World, form: Form, price: string): Session {
  const id = world.id("cs_test");
  return {
    id,
    created: world.now(),
    customer: form["customer"] ?? "",
    mode: form["mode"] ?? "",
    status: "open",
    payment_status: "unpaid",
    payment_intent: null,
    subscription: null,
    metadata: membersOf(form, "metadata"),
    subscription_metadata: membersOf(form, "subscription_data[metadata]"),
    url: `https://checkout.stripe.com/c/pay/${id}`,
    price,
  };
}

/** `name[key]` of a form, by key. */
function membersOf(form: Form, name: string): Record<string, string> {
  const found = Object.entries(form).filter(([one]) => one.startsWith(`${name}[`));
  return Object.fromEntries(found.map(([one, value]) => [one.slice(name.length + 1, -1), value]));
}

function expire(world: World, id: string): Answer {
  const session = world.sessions.find((one) => one.id === id);
  if (session?.status !== "open")
    return { status: 400, body: errorBody({ message: "Only open ones expire." }) };
  session.status = "expired";
  return ok(session);
}

/** The payment itself in place of its id, where that was asked for. */
function withCharge(world: World, session: Session, asked: string[]): { id: string } {
  const charge = world.charges.find(({ payment_intent }) => payment_intent === session.payment_intent);
  if (!charge || !asked.some((one) => one.endsWith("payment_intent.latest_charge"))) return session;
  return Object.assign({}, session, {
    payment_intent: { id: session.payment_intent, latest_charge: charge },
  });
}

function refusalOf(call: ApiCall): Response | undefined {
  if (call.headers["authorization"] !== `Bearer ${STRIPE_KEY}`)
    return refuse(401, { message: "Invalid API Key provided: sk_test_****cret" });
  const posts = call.method === "POST";
  const isForm = call.headers["content-type"] === "application/x-www-form-urlencoded";
  if (posts && !isForm) return refuse(400, { message: "Only forms are read." });
  if (!call.headers["stripe-version"]) return refuse(400, { message: "Which version?" });
  if (posts && call.headers["idempotency-key"]?.startsWith("mailwright-") !== true)
    return refuse(400, { message: "Where is the idempotency key?" });
  const param = unknownParameter(STRIPE_FORMS, call);
  if (param !== undefined)
    return refuse(400, { code: "parameter_unknown", param, message: `Received unknown parameter: ${param}` });
  return undefined;
}

function refuse(status: number, error: object): Response {
  return Response.json(errorBody(error), { status });
}

function errorBody(error: object): object {
  return { error: { type: "invalid_request_error", message: "SECRET words of Stripe", ...error } };
}

function missing(param: string, what: string | undefined): Answer {
  const message = `No such ${param}: '${what}'`;
  return { status: 404, body: errorBody({ code: "resource_missing", param, message }) };
}

function ok(body: object): Answer {
  return { status: 200, body };
}

function list(data: object[]): Answer {
  return ok({ object: "list", data, has_more: false, url: "/v1/list" });
}

/** The newest first, from behind `starting_after` on. */
function page(all: (object & { id: string })[], form: Form): Answer {
  const newest = all.toReversed();
  const start = newest.findIndex(({ id }) => id === form["starting_after"]) + 1;
  const end = start + Number(form["limit"] ?? 10);
  const data = newest.slice(start, end);
  return ok({ object: "list", data, has_more: end < newest.length, url: "/v1/checkout/sessions" });
}

/** https://docs.stripe.com/webhooks#verify-manually: the HMAC of `t.body`, in hex. */
function signed(event: object | string, { secret, at }: { secret: string; at: number }): RequestInit {
  const body = typeof event === "string" ? event : JSON.stringify(event, null, 2);
  const v1 = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "stripe-signature": `t=${at},v1=${v1}`,
  };
  return { method: "POST", headers, body };
}
