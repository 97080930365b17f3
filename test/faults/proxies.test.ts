import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { account, house, inbox } from "./house.ts";

/** A proxy that lets nothing through, and remembers what it was asked for. */
function startProxy() {
  const seen: string[] = [];
  const proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        seen.push(bytes.toString().split("\r\n")[0] ?? "");
        socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
      },
    },
  });
  const url = `http://127.0.0.1:${proxy.port}`;
  const env = { HTTP_PROXY: url, http_proxy: url, HTTPS_PROXY: url, https_proxy: url };
  return { seen, env, [Symbol.dispose]: () => proxy.stop(true) };
}

test("a proxy of the environment gets neither the mail for the spam filter nor what is for a model next door, and the doctor names it", async () => {
  using proxy = startProxy();
  let asked = 0;
  await using filter = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      asked += 1;
      return Response.json({ action: "reject", score: 20, required_score: 15 });
    },
  });
  await using model = startModelServer();
  await using at = await house({
    smtp: { trusted_networks: [] },
    rspamd: { url: `http://127.0.0.1:${filter.port}` },
    llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
  });
  await using server = await at.start(proxy.env);
  const ann = await account(at, "ann@client.example");
  const to = await inbox(server, ann, { label: "X", inbound_policy: { process_unauthenticated: true } });
  const raw = rawMail({ from: "eve@x.example", to, text: "hi" });
  expect(await deliver(server.smtp, { from: "eve@x.example", to, raw })).toStartWith("550");
  expect(asked).toBe(1);
  const headers = { "x-api-key": ann.api_key, "content-type": "application/json" };
  const body = JSON.stringify({ instruction: "Say hello" });
  const call = await fetch(`${server.http}/v1/messages`, { method: "POST", headers, body });
  expect(await call.json()).toMatchObject({ status: "done" });
  const doctor = at.spawn(proxy.env, "doctor", "--json");
  const said = await new Response(doctor.stdout).text();
  await doctor.exited;
  expect(said).toContain("HTTP_PROXY");
  expect(proxy.seen.filter((line) => line.includes("127.0.0.1"))).toEqual([]);
}, 120_000);
