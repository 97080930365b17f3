import { Type } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverRate } from "../../http/request.ts";
import { LAST_SECOND, pageQuery } from "../../http/shapes.ts";
import { countDeliveries, listDeliveries, readDelivery, replayFailed, retryDelivery } from "./deliveries.ts";
import {
  createEndpoint,
  listEndpoints,
  ownEndpoint,
  patchEndpoint,
  readEndpoint,
  revealSecret,
  rotateSecret,
} from "./endpoints.ts";
import { deleteEndpoint } from "./delete-endpoint.ts";
import { endpointBody, newEndpointBody } from "./body-shapes.ts";
import {
  CountsShape,
  DeliveryDetailShape,
  DeliveryShape,
  EndpointShape,
  NewEndpointShape,
  ReplayShape,
  SecretShape,
  TestDeliveryShape,
} from "./shapes.ts";
import { testEndpoint } from "./test-endpoint.ts";

/** Each is a call to somebody's server, while somebody waits. */
const TEST_RATE = { limit: 10, window_seconds: 60 };
const NO_STORE = { "cache-control": "no-store" };

// Elysia's own integer would take "30" for one.
const replay = t.Object({
  since: Type.Integer({
    minimum: 0,
    maximum: LAST_SECOND,
    description: "In unix seconds; nothing is older than 30 days.",
    examples: [1_768_478_400],
  }),
});

const delivery = t.Object({ id: t.String(), delivery_id: t.String({ format: "uuid" }) });

export function webhookRoutes(app: App) {
  return new Elysia().use(endpointRoutes(app)).use(secretRoutes(app)).use(deliveryRoutes(app));
}

function endpointRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/v1/webhooks", ({ user }) => listEndpoints(app.db, user), DESCRIBED.list)
    .get("/v1/webhooks/:id", ({ user, params }) => readEndpoint(app.db, user, params.id), DESCRIBED.read)
    .post(
      "/v1/webhooks",
      async ({ caller, body, set }) => {
        const made = await createEndpoint(app, caller, body);
        set.status = 201;
        Object.assign(set.headers, NO_STORE);
        return made;
      },
      { body: newEndpointBody, ...DESCRIBED.create },
    )
    .patch(
      "/v1/webhooks/:id",
      ({ caller, params: { id }, body }) => patchEndpoint(app, caller, { id, settings: body }),
      { body: endpointBody, ...DESCRIBED.patch },
    )
    .delete(
      "/v1/webhooks/:id",
      async ({ caller, params, set }) => {
        await deleteEndpoint(app, caller, params.id);
        set.status = 204;
      },
      DESCRIBED.remove,
    )
    .post(
      "/v1/webhooks/:id/test",
      async ({ user, params: { id } }) => {
        const endpoint = await ownEndpoint(app.db, user, id);
        refuseOverRate(app, `webhook-test:${user.id}`, TEST_RATE);
        return testEndpoint(app, user, endpoint);
      },
      DESCRIBED.test,
    );
}

function secretRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/v1/webhooks/:id/secret",
      ({ caller, params, set }) => {
        Object.assign(set.headers, NO_STORE);
        return revealSecret(app, caller, params.id);
      },
      DESCRIBED.secret,
    )
    .post(
      "/v1/webhooks/:id/rotate-secret",
      ({ caller, params, set }) => {
        Object.assign(set.headers, NO_STORE);
        return rotateSecret(app, caller, params.id);
      },
      DESCRIBED.rotate,
    );
}

function deliveryRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/v1/webhooks/:id/deliveries",
      ({ user, params: { id }, query: { limit } }) => listDeliveries(app, user, { id, limit }),
      { query: t.Object({ limit: pageQuery.limit }), ...DESCRIBED.deliveries },
    )
    .get("/v1/webhooks/:id/deliveries/:delivery_id", ({ user, params }) => readDelivery(app, user, params), {
      params: delivery,
      ...DESCRIBED.delivery,
    })
    .post(
      "/v1/webhooks/:id/deliveries/:delivery_id/retry",
      async ({ user, params, set }) => {
        set.status = 202;
        return retryDelivery(app, user, params);
      },
      { params: delivery, ...DESCRIBED.retry },
    )
    .get(
      "/v1/webhooks/:id/counts",
      ({ user, params }) => countDeliveries(app, user, params.id),
      DESCRIBED.counts,
    )
    .post(
      "/v1/webhooks/:id/replay",
      async ({ user, params: { id }, body: { since }, set }) => {
        set.status = 202;
        return replayFailed(app, user, { id, since });
      },
      { body: replay, ...DESCRIBED.replay },
    );
}

const tag = "Webhooks";

const DESCRIBED = {
  counts: describe({
    tag,
    summary: "How many deliveries have failed, or wait",
    description: "Deliveries of the last 30 days.",
    answers: { 200: CountsShape },
  }),
  list: describe({ tag, summary: "List your webhook endpoints", answers: { 200: t.Array(EndpointShape) } }),
  read: describe({ tag, summary: "Read a webhook endpoint", answers: { 200: EndpointShape } }),
  create: describe({
    tag,
    summary: "Make a webhook endpoint",
    description:
      "Keep the secret: it is how the receiver knows that a delivery is genuine. `/docs/webhooks` shows how to check it.",
    answers: { 201: NewEndpointShape },
    errors: ["plan_limit_reached"],
  }),
  patch: describe({
    tag,
    summary: "Change a webhook endpoint",
    description:
      "Absent members stay as they are. `enabled: true` forgets earlier failures; `enabled: false` ends what is being tried, as failed, so that it can be replayed.",
    answers: { 200: EndpointShape },
    errors: ["plan_limit_reached"],
  }),
  remove: describe({
    tag,
    summary: "Delete a webhook endpoint",
    description: "What was still to be delivered to it is not, and its deliveries are no longer listed.",
    answers: { 204: null },
  }),
  test: describe({
    tag,
    summary: "Send a test event",
    description:
      "One attempt, now, with a made-up `message.completed` whose `livemode` is false; also to an endpoint that is switched off. What came of it is in the answer, which is 200 however it ended. Ten a minute.",
    answers: { 200: TestDeliveryShape },
    errors: ["conflict"],
  }),
  secret: describe({
    tag,
    summary: "Show the signing secret",
    description: "409 only when it cannot be read, because the server has another master key now.",
    answers: { 200: SecretShape },
    errors: ["conflict"],
  }),
  rotate: describe({
    tag,
    summary: "Make a new signing secret",
    description:
      "For 24 hours the one before signs as well: a delivery has two `v1` signatures, and one that fits is enough.",
    answers: { 200: SecretShape },
  }),
  deliveries: describe({
    tag,
    summary: "What was sent in the last 30 days, newest first",
    answers: { 200: t.Array(DeliveryShape) },
  }),
  delivery: describe({
    tag,
    summary: "Read a delivery with what was sent",
    answers: { 200: DeliveryDetailShape },
  }),
  retry: describe({
    tag,
    summary: "Send a delivery again",
    description:
      "The same event with the same id, with as many attempts as a new one; one that was acknowledged can be sent again too. One that waits for its next attempt is tried now instead, and keeps its count. 409 while an attempt is on its way, or while the endpoint is switched off.",
    answers: { 202: DeliveryShape },
    errors: ["conflict"],
  }),
  replay: describe({
    tag,
    summary: "Send again all that failed",
    description:
      "All failed deliveries since then, but for tests, as `retry` does it with one. 409 while the endpoint is switched off.",
    answers: { 202: ReplayShape },
    errors: ["conflict"],
  }),
};
