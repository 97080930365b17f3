import { generate } from "selfsigned";
import { messageOf } from "../errors.ts";
import type { SelfSigned } from "./self-signed.ts";
import { DAY_MS } from "../lib/durations.ts";

declare const self: Worker;

const VALID_DAYS = 3_650;

/** Receives one message, a host name. */
self.addEventListener("message", ({ data: hostname }: MessageEvent<string>) => void answer(hostname));

async function answer(hostname: string): Promise<void> {
  postMessage(await made(hostname).catch((error: unknown) => ({ fault: messageOf(error) })));
}

async function made(hostname: string): Promise<SelfSigned> {
  const { cert, private: key } = await generate([{ name: "commonName", value: hostname }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notAfterDate: new Date(Date.now() + VALID_DAYS * DAY_MS),
  });
  return { cert, key };
}
