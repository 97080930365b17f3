import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** Below those that the system gives to whoever asks for port 0, or for a connection: 32,768 and up on Linux. */
const FIRST = 12_000;
const END = 32_000;
/** For each process, as several run tests at the same time. */
const SHARE = 50;

const first = FIRST + ((process.pid * SHARE) % (END - FIRST));
let given = 0;

/**
 * A loopback port that is free for TCP and UDP, for a program that cannot be asked which one it got, or that is to
 * come back at the same one. Nobody else is given it soon.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < SHARE; tries += 1) {
    const port = first + (given++ % SHARE);
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) return port;
  }
  throw new Error(`All ports from ${first} to ${first + SHARE - 1} are in use`);
}

function isFreeForTcp(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  return new Promise((resolve) => {
    socket.once("error", () => resolve(false));
    socket.bind(port, "127.0.0.1", () => socket.close(() => resolve(true)));
  });
}
