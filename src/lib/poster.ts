import { connect, isIP } from "node:net";
import { type EgressRules, targetFor } from "./net.ts";
import { readCapped } from "./responses.ts";

const MAX_ADDRESSES_TRIED = 3;
/** So long an address that took a connection is believed to take the next one. */
const REACHED_MS = 60_000;
const MAX_REACHED = 10_000;
/** Once the status is known, the rest of the answer may take so much longer. */
const REST_MS = 5_000;

export interface PostRequest {
  url: string;
  /** All but Host, Content-Length and Connection. */
  headers: Record<string, string>;
  body: string;
  /** From the look-up of the name to the end of the answer. */
  timeout_ms: number;
  /** Of it, at most so much until an address takes a connection. */
  connect_ms: number;
  /** Of the answer, so much is read. */
  max_bytes: number;
}

export interface HttpAnswer {
  status: number;
  headers: Headers;
  /** As it came, not unpacked, and cut at the limit; empty if its end never came. */
  body: Buffer;
}

/** POSTs to addresses that users enter, by the rules of `createSafeFetch`. */
export interface Poster extends Disposable {
  /**
   * Resolves with the answer once its status is known and its body has come or is given up. Throws
   * BlockedAddressError, an error with the name "TimeoutError", or what the look-up, the connection or `fetch` threw.
   */
  post(request: PostRequest): Promise<HttpAnswer>;
}

export function createPoster(rules: EgressRules): Poster {
  const targetOf = targetFor(rules);
  const addressFor = reachableAddress();
  const under_way = new Set<AbortController>();
  return {
    async post(work) {
      const abort = new AbortController();
      under_way.add(abort);
      const endAfter = (ms: number) => setTimeout(() => abort.abort(tooLate()), ms);
      const timer = endAfter(work.timeout_ms);
      let rest: ReturnType<typeof setTimeout> | undefined;
      try {
        const url = new URL(work.url);
        const { addresses } = await unlessAborted(targetOf(url), abort.signal);
        const address = await addressFor(addresses.slice(0, MAX_ADDRESSES_TRIED), url, work.connect_ms);
        const response = await fetch(
          pinned(url, address),
          requestOf(url, work, { rules, signal: abort.signal }),
        );
        rest = endAfter(REST_MS);
        const { status, headers } = response;
        // The status decides: whoever has said it has the request, whatever became of the rest of the answer.
        const body = await readCapped(response, work.max_bytes).catch(() => undefined);
        return { status, headers, body: Buffer.from(body?.bytes ?? []) };
      } finally {
        clearTimeout(timer);
        clearTimeout(rest);
        under_way.delete(abort);
      }
    },
    [Symbol.dispose]() {
      for (const abort of under_way) abort.abort();
    },
  };
}

/** The name is in Host and in the TLS handshake, and its certificate must be for it, whatever address is dialled. */
function requestOf(
  url: URL,
  { headers, body }: PostRequest,
  { rules, signal }: { rules: EgressRules; signal: AbortSignal },
): BunFetchRequestInit {
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const secure = {
    serverName: isIP(name) === 0 ? name : "",
    ...(rules.ca === undefined ? {} : { ca: rules.ca }),
  };
  return {
    method: "POST",
    headers: { ...headers, host: url.host, "accept-encoding": "identity" },
    body,
    signal,
    redirect: "manual",
    // What says that it is packed may be far larger than it looks.
    decompress: false,
    ...(url.protocol === "https:" ? { tls: secure } : {}),
  };
}

function pinned(url: URL, address: string): URL {
  const at = new URL(url);
  at.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return at;
}

/** The first address that takes a connection, tried one after the other: `fetch` alone would wait for one that is silent. */
function reachableAddress(): (addresses: string[], url: URL, within_ms: number) => Promise<string> {
  const reached = new Map<string, number>();
  return async (addresses, url, within_ms) => {
    const until = performance.now() + within_ms;
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    for (const [index, address] of addresses.entries()) {
      const key = `${address} ${port}`;
      if ((reached.get(key) ?? 0) > performance.now()) return address;
      try {
        const left_ms = (until - performance.now()) / (addresses.length - index);
        await reach(address, port, left_ms);
        if (reached.size >= MAX_REACHED) reached.clear();
        reached.set(key, performance.now() + REACHED_MS);
        return address;
      } catch (error) {
        if (index === addresses.length - 1) throw error;
      }
    }
    throw new Error(`no address to dial for ${url.hostname}`);
  };
}

function reach(host: string, port: number, within_ms: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port }, resolve);
  socket.once("error", reject);
  socket.setTimeout(Math.max(1, within_ms), () => reject(tooLate()));
  return promise.finally(() => socket.destroy());
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return Promise.race([work, aborted]);
}

function tooLate(): Error {
  return new DOMException("The time is up.", "TimeoutError");
}
