import { monitorEventLoopDelay } from "node:perf_hooks";

/**
 * Loaded in front of the server by `bun --preload`, so that the server itself stays as it is: measures how late its
 * event loop is, and says so in milliseconds on the port of BENCH_LOOP_PORT. `GET /all` gives what
 * `monitorEventLoopDelay` has seen since `GET /begin`, `GET /` every delay of a timer of its own since it was last asked.
 */
const RESOLUTION_MS = 5;

export interface LoopDelay {
  p50: number;
  p99: number;
  max: number;
}

/** What a timer that is due every 5 ms was late by, in ascending order. */
export interface LoopDelays {
  late: number[];
}

const port = Number(process.env["BENCH_LOOP_PORT"] ?? 0);
if (Bun.isMainThread && port > 0) measure();

function measure(): void {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let late: number[] = [];
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    late.push(Math.max(0, now - last - RESOLUTION_MS));
    last = now;
  }, RESOLUTION_MS).unref();
  Bun.serve({
    port,
    hostname: "127.0.0.1",
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/all") return Response.json(figuresOf(histogram));
      if (pathname === "/begin") histogram.reset();
      const sorted = late.toSorted((one, other) => one - other);
      late = [];
      return Response.json({ late: sorted } satisfies LoopDelays);
    },
  });
}

function figuresOf(histogram: ReturnType<typeof monitorEventLoopDelay>): LoopDelay {
  const ms = (nanoseconds: number): number => (Number.isFinite(nanoseconds) ? nanoseconds / 1e6 : 0);
  return { p50: ms(histogram.percentile(50)), p99: ms(histogram.percentile(99)), max: ms(histogram.max) };
}
