import { createResolver } from "../../src/net/dns.ts";
import {
  createSender,
  type OutgoingMail,
  type Sender,
  type SenderOptions,
} from "../../src/mail/sending/send.ts";
import { type DnsZone, startDnsServer, type TestDnsServer } from "./dns-server.ts";
import { type SinkOptions, type SmtpSink, startSmtpSink } from "./smtp-sink.ts";

export const MAIL: OutgoingMail = {
  raw: Buffer.from("From: box@me.example\r\nMessage-ID: <1@me.example>\r\n\r\n.dot\r\n.\r\nlast line\r\n"),
  envelope_from: "b+1@me.example",
  envelope_to: "ann@there.example",
};
/** Short where a test waits for a limit, and long enough elsewhere for a machine that does much else meanwhile. */
export const SHORT = { connect_ms: 10_000, greeting_ms: 1_500, idle_ms: 10_000, confirm_ms: 4_000 };

export interface Direct extends AsyncDisposable {
  sender: Sender;
  sinks: SmtpSink[];
  dns: TestDnsServer;
}

/** One sink per entry, as mx1.there.example on 127.0.0.1, mx2.there.example on 127.0.0.2 and so on, all on one port. */
export async function direct(
  sinks: SinkOptions[],
  zone: DnsZone,
  given: Partial<SenderOptions> | ((name_server: string) => Partial<SenderOptions>) = {},
): Promise<Direct> {
  const dns = await startDnsServer(zone);
  const options = typeof given === "function" ? given(dns.address) : given;
  const started: SmtpSink[] = [];
  for (const [index, sink] of sinks.entries()) {
    const host = `127.0.0.${index + 1}`;
    dns.set(`mx${index + 1}.there.example`, "A", [host]);
    started.push(await startSmtpSink({ host, ...sink, port: started[0]?.port ?? 0 }));
  }
  const sender = createSender({
    mode: "direct",
    relay_url: "",
    hostname: "me.example",
    resolver: createResolver({ servers: [dns.address] }),
    egress_allow: ["127.0.0.0/8"],
    port: started[0]?.port ?? 1,
    ...options,
    timeouts: { ...SHORT, ...options.timeouts },
  });
  return {
    sender,
    sinks: started,
    dns,
    [Symbol.asyncDispose]: async () => {
      await sender[Symbol.asyncDispose]();
      for (const sink of started) await sink[Symbol.asyncDispose]();
      await dns[Symbol.asyncDispose]();
    },
  };
}

export function at<T>(list: T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`there is no item ${index}`);
  return item;
}
