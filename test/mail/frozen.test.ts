import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";

const SCRIPT = join(import.meta.dir, "fixtures/send-each.ts");
/** Each of the time limits of an attempt. */
const LIMIT_MS = 3_000;
/** Longer than all of them together. */
const FROZEN_MS = 7_000;
const REPLIES = {
  greeting: "220 here",
  EHLO: "250 hello",
  MAIL: "250 ok",
  RCPT: "250 ok",
  DATA: "354 go on",
  end: "250 kept",
};
type Step = keyof typeof REPLIES;

describe.each(["relay", "direct"])("a process that is stopped in the middle of a mail (%s)", (mode) => {
  let frozen: ReturnType<typeof freeze> | undefined;
  test.each(Object.keys(REPLIES) as Step[])(
    "hears what was said meanwhile, though all limits are over: at %s",
    async (step) => {
      const { outcome, counts } = (await (frozen ??= freeze(mode)))[step];
      expect(outcome).toMatchObject({ status: "sent", response: "250 kept" });
      expect(counts).toEqual({ connections: 1, mails: 1 });
    },
    20_000,
  );
});

/** One process sends a mail to a peer for each step, and is stopped when every one of them waits at its step. */
async function freeze(mode: string): Promise<Record<Step, { outcome: object; counts: object }>> {
  await using stack = new AsyncDisposableStack();
  const steps = Object.keys(REPLIES) as Step[];
  const peers = await Promise.all(steps.map(async (step) => stack.use(await startPeer(step))));
  const limits = { connect_ms: LIMIT_MS, greeting_ms: LIMIT_MS, idle_ms: LIMIT_MS };
  const options = peers.map(({ port }) => ({
    mode,
    relay_url: `smtp://127.0.0.1:${port}`,
    port,
    hostname: "mx.here.example",
    egress_allow: ["127.0.0.1"],
    timeouts: { ...limits, confirm_ms: LIMIT_MS, attempt_ms: LIMIT_MS },
  }));
  const child = Bun.spawn([process.execPath, SCRIPT, JSON.stringify(options)], { stdout: "pipe" });
  await Promise.all(peers.map(({ asked }) => asked));
  child.kill("SIGSTOP");
  for (const peer of peers) peer.answer();
  await Bun.sleep(FROZEN_MS);
  child.kill("SIGCONT");
  const outcomes = JSON.parse(await new Response(child.stdout).text()) as object[];
  return Object.fromEntries(
    steps.map((step, index) => [step, { outcome: outcomes[index], counts: peers[index]?.counts }]),
  ) as Record<Step, { outcome: object; counts: object }>;
}

/** A mail server that waits at one step until it may answer. */
async function startPeer(step: Step) {
  const asked = Promise.withResolvers<void>();
  const may = Promise.withResolvers<void>();
  const counts = { connections: 0, mails: 0 };
  const server = createServer((socket) => {
    counts.connections += 1;
    const say = async (at: Step): Promise<void> => {
      if (at === step) {
        asked.resolve();
        await may.promise;
      }
      if (at === "end") counts.mails += 1;
      socket.write(`${REPLIES[at]}\r\n`);
    };
    socket.on("error", () => socket.destroy());
    listen(socket, say);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    counts,
    asked: asked.promise,
    answer: () => may.resolve(),
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

function listen(socket: Socket, say: (at: Step) => Promise<void>): void {
  let text = "";
  let in_data = false;
  void say("greeting");
  socket.on("data", (part) => {
    text += part.toString("latin1");
    for (;;) {
      const mark = in_data ? "\r\n.\r\n" : "\r\n";
      const end = text.indexOf(mark);
      if (end === -1) return;
      const line = text.slice(0, end);
      text = text.slice(end + mark.length);
      const verb = line.slice(0, 4).toUpperCase();
      if (in_data) void say("end");
      else if (verb in REPLIES) void say(verb as Step);
      else socket.end("221 bye\r\n");
      in_data = !in_data && verb === "DATA";
    }
  });
}
