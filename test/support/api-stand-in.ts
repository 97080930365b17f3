/** A request as a stand-in got it. */
export interface ApiCall {
  method: string;
  /** As it was sent, escapes and all. */
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  // Stand-ins judge bodies of every shape.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

type Handler = (call: ApiCall) => Response | Promise<Response> | undefined | Promise<undefined>;

export interface StandIn extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  origin: string;
  calls: ApiCall[];
  /** Answers before the stand-in does; may be changed between requests. */
  first: Handler;
}

/** A server on a free loopback port; what neither `first` nor `handle` answers is refused with 404. */
export function startStandIn(handle: Handler): StandIn {
  const calls: ApiCall[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const call = await record(request);
      calls.push(call);
      return (
        (await standIn.first(call)) ??
        (await handle(call)) ??
        Response.json({ message: "Not Found" }, { status: 404 })
      );
    },
  });
  const standIn: StandIn = {
    origin: `http://127.0.0.1:${server.port}`,
    calls,
    first: () => undefined,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return standIn;
}

async function record(request: Request): Promise<ApiCall> {
  const url = new URL(request.url);
  const text = await request.text();
  const isJson = request.headers.get("content-type")?.includes("json") === true;
  return {
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(request.headers),
    body: isJson && text !== "" ? JSON.parse(text) : text || undefined,
  };
}
