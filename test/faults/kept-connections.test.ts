import { expect, test } from "bun:test";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { startModelServer } from "../support/model-server.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { limitHandles, whyNoLimit } from "./few-handles.ts";
import { house, type ServerProcess } from "./house.ts";
import { ask, desk, linesWith, logged } from "./surfaces.ts";

/** Few for a server, so that a test can take them all. */
const FILES = 400;
/** More than that. */
const STRANGERS = 600;
const PROXY = "127.0.2.1";
/** More than any network is left with. */
const PROXIED = 150;

test.skipIf(whyNoLimit !== undefined)(
  "connections that strangers keep take no handle from anybody else, whatever they have said, nor from who waits for an answer or from a proxy",
  async () => {
    const may_answer = Promise.withResolvers<void>();
    await using model = startModelServer({
      reply: async () => {
        await may_answer.promise;
        return "Done.";
      },
    });
    await using at = await house({
      server: { trusted_proxies: [PROXY] },
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      egress: { allow: ["127.0.0.1"] },
    });
    await using server = await at.start();
    const owner = await desk(at, server);
    // Longer without a word than any stranger, one from their own address and one from another network.
    const call = ask(server, owner, "/v1/messages", { instruction: "x" });
    await model.received(1);
    const neighbour = from("127.0.1.1", server);
    expect(await answerTo(neighbour, livez)).toStartWith("HTTP/1.1 200 ");

    const proxied = Array.from({ length: PROXIED }, () => from(PROXY, server));
    for (const socket of proxied) expect(await answerTo(socket, livez)).toStartWith("HTTP/1.1 200 ");

    limitHandles(server.pid, FILES);
    const strangers = Array.from({ length: STRANGERS }, (_, n) => {
      const socket = from("127.0.0.1", server);
      socket.on("error", () => undefined).pause();
      socket.write(BEGINNINGS[n % BEGINNINGS.length] ?? "");
      return socket;
    });
    await logged(server, "HTTP connections were ended");

    const live = await fetch(`${server.http}/livez`, { keepalive: false });
    expect(live.status).toBe(200);
    await using door = await smtpClient(server.smtp);
    expect(door.greeting).toStartWith("220 ");
    expect(await answerTo(neighbour, livez)).toStartWith("HTTP/1.1 200 ");
    for (const socket of proxied) expect(await answerTo(socket, livez)).toStartWith("HTTP/1.1 200 ");
    may_answer.resolve();
    expect((await call).status).toBe(200);
    expect(linesWith(server, '"level":50')).toEqual([]);
    for (const socket of [neighbour, ...proxied, ...strangers]) socket.destroy();
  },
  60_000,
);

const livez = "GET /livez HTTP/1.1\r\nHost: mw.test\r\n\r\n";
/** All that a connection can stay with: nothing, a part of a request, an answer, or one that is never fetched. */
const BEGINNINGS = [
  "",
  "GET /livez HTTP/1.1\r\nHost: mw",
  "POST /auth/login HTTP/1.1\r\nHost: mw.test\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
  livez,
  "GET /openapi.json HTTP/1.1\r\nHost: mw.test\r\n\r\n".repeat(9),
];

function from(localAddress: string, { http }: ServerProcess): Socket {
  const { hostname, port } = new URL(http);
  return connect({ host: hostname, port: Number(port), localAddress });
}

async function answerTo(socket: Socket, request: string): Promise<string> {
  socket.write(request);
  const [answer] = (await once(socket, "data")) as [Buffer];
  return answer.toString();
}
