import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { TestApp } from "./app.ts";

/** Loopback is where the receivers of tests are. */
export const TO_LOOPBACK = { allow: ["127.0.0.1"] };

export interface Received {
  headers: Record<string, string>;
  body: string;
  /** The envelope in it. */
  // oxlint-disable-next-line typescript/no-explicit-any
  event: any;
}

export interface WebhookReceiver extends AsyncDisposable {
  url: string;
  /** What came, in order. */
  received: Received[];
  /** May be changed between requests; 204 by default. */
  answer: (request: Received) => Response | Promise<Response>;
  /** The most requests that were in hand at the same time. */
  most_at_once: number;
  /** Resolves when so many have come in all. */
  reached(count: number): Promise<void>;
}

export function startReceiver(answer?: WebhookReceiver["answer"]): WebhookReceiver {
  const counter = createCounter();
  let in_hand = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      in_hand += 1;
      receiver.most_at_once = Math.max(receiver.most_at_once, in_hand);
      const body = await request.text();
      const received = { headers: request.headers.toJSON(), body, event: JSON.parse(body) as unknown };
      receiver.received.push(received);
      counter.count();
      try {
        return await receiver.answer(received);
      } finally {
        in_hand -= 1;
      }
    },
  });
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${server.port}/hook`,
    received: [],
    answer: answer ?? (() => new Response(null, { status: 204 })),
    most_at_once: 0,
    reached: counter.reached,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return receiver;
}

function createCounter() {
  const waiting: { wanted: number; resolve: () => void }[] = [];
  let counted = 0;
  return {
    count(): void {
      counted += 1;
      for (const { wanted, resolve } of waiting) if (counted >= wanted) resolve();
    },
    reached(wanted: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ wanted, resolve });
      if (counted >= wanted) resolve();
      return promise;
    },
  };
}

export interface RawReceiver extends AsyncDisposable {
  port: number;
  url: string;
  connections: number;
  /** Whole ones. */
  requests: number;
  /** Resolves when there have been so many connections in all. */
  reached(count: number): Promise<void>;
}

/** A receiver that may do on the wire whatever it likes, once a whole request has come. */
export async function startRawReceiver(
  answer: (socket: Socket, request: string) => void,
): Promise<RawReceiver> {
  const sockets = new Set<Socket>();
  const counter = createCounter();
  const server = createServer((socket) => {
    receiver.connections += 1;
    counter.count();
    sockets.add(socket);
    let text = "";
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk) => {
      text += chunk.toString();
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
      if (head < 0 || Buffer.byteLength(text) < head + 4 + length) return;
      const request = text;
      text = "";
      receiver.requests += 1;
      answer(socket, request);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const receiver: RawReceiver = {
    port,
    url: `http://127.0.0.1:${port}/hook`,
    connections: 0,
    requests: 0,
    reached: counter.reached,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

/** A row of what was delivered, as the owner sees it, with its body. */
export function deliveriesOf(t: TestApp, endpoint_id: string) {
  return t.app.db
    .selectFrom("webhook_deliveries")
    .selectAll()
    .where("endpoint_id", "=", endpoint_id)
    .orderBy("id")
    .execute();
}

export function endpointOf(t: TestApp, id: string) {
  return t.app.db.selectFrom("webhook_endpoints").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
}
