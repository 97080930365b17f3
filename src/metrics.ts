import type { Histogram, Registry } from "prom-client";
import { ERROR_CODES } from "./errors.ts";
import { VERSION } from "./lib/version.ts";
import { REFUSALS, MESSAGE_STATES } from "./reasons.ts";

type Labels = Record<string, string>;
/**
 * Every label with the values it may have. Any other value is shown as `other`, so that nobody can make the list grow.
 */
type LabelValues = Record<string, readonly string[]>;

interface Series {
  help: string;
  labels: LabelValues;
}

const SOURCES = ["email", "api", "test"] as const;
const SENDINGS = ["sent", "deferred", "bounced", "suppressed"] as const;
const METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"] as const;
const STATUSES = ["2xx", "3xx", "4xx", "5xx"] as const;

const COUNTERS = {
  mailwright_mails_refused_total: {
    help: "Mails and recipients that the SMTP door refused or put off.",
    labels: { reason: Object.keys(REFUSALS) },
  },
  mailwright_mails_dropped_total: {
    help: "Mails that were taken and of which no account sees anything: reports and answers of machines to addresses that are no inbox.",
    labels: { reason: ["bounce", "role_again", "role_machine", "role_report"] },
  },
  mailwright_messages_total: {
    help: "Messages by what they came to; each is counted once as received and once at its end.",
    labels: { source: SOURCES, state: MESSAGE_STATES },
  },
  mailwright_approvals_total: {
    help: "Requests for consent to a call of a tool: those that were made (pending), and what was decided and came of them.",
    labels: { status: ["pending", "approved", "refused", "done", "failed", "unknown"] },
  },
  mailwright_model_tokens_total: {
    help: "Tokens of ended runs, as the models counted them.",
    labels: { direction: ["input", "output"] },
  },
  mailwright_credits_charged_total: { help: "Credits charged for runs.", labels: {} },
  mailwright_http_refusals_total: {
    help: "HTTP answers that were errors, by their code.",
    labels: { code: ERROR_CODES },
  },
} satisfies Record<string, Series>;

const HISTOGRAMS = {
  mailwright_accept_seconds: {
    help: "From the end of a mail to the answer of the SMTP door.",
    labels: { outcome: ["accepted", "refused", "put_off"] },
    buckets: [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  },
  mailwright_route_seconds: {
    help: "From the acceptance of a message to the end of its run.",
    labels: { source: SOURCES, state: MESSAGE_STATES },
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  },
  mailwright_reply_seconds: {
    help: "From the acceptance of a message to its answer being handed over.",
    labels: {},
    buckets: [0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400],
  },
  mailwright_send_seconds: {
    help: "One attempt to hand a mail over.",
    labels: { outcome: SENDINGS },
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  },
  mailwright_webhook_seconds: {
    help: "One attempt to deliver a webhook.",
    labels: { outcome: ["delivered", "failed"] },
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
  },
  mailwright_http_request_seconds: {
    help: "HTTP requests, by method and class of status.",
    labels: { method: METHODS, status: STATUSES },
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 90],
  },
  mailwright_event_loop_delay_seconds: {
    help: "How late a timer rings that is set every 50 ms.",
    labels: {},
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  },
} satisfies Record<string, Series & { buckets: number[] }>;

const SAMPLE_MS = 50;

/** A figure that is read only when somebody asks for the metrics, with its labels. */
export interface Reading {
  name: string;
  help: string;
  labels: string[];
  values: { labels: Labels; value: number }[];
}

type CounterName = keyof typeof COUNTERS;
type HistogramName = keyof typeof HISTOGRAMS;

/** The figures of this process. */
export interface Metrics {
  /** Whether somebody reads all figures; if not, only what an administrator is shown is kept, in a few numbers. */
  readonly on: boolean;
  count(name: CounterName, labels?: Labels, by?: number): void;
  time(name: HistogramName, labels: Labels, seconds: number): void;
  /** Returns the counts since the process began. */
  counted(name: CounterName): { labels: Labels; value: number }[];
  /** Returns the last 500 times at most, in seconds. */
  lately(name: HistogramName): number[];
  /** Returns all figures in the text format of Prometheus, `readings` beside what was counted. */
  render(readings: Reading[]): Promise<{ text: string; content_type: string }>;
  [Symbol.dispose](): void;
}

const MAX_LATELY = 500;

/** The figures of a process whose metrics nobody reads: only what an administrator is shown is kept. */
export function createTally(): Metrics {
  const counters = new Map<string, { name: string; labels: Labels; value: number }>();
  const times = new Map<string, number[]>();
  return {
    on: false,
    count(name, given = {}, by = 1) {
      const labels = within(COUNTERS[name].labels, given);
      const key = [name, ...Object.values(labels)].join(" ");
      const known = counters.get(key);
      if (known) known.value += by;
      else counters.set(key, { name, labels, value: by });
    },
    time(name, _labels, seconds) {
      const known = times.get(name) ?? [];
      known.push(seconds);
      if (known.length > MAX_LATELY) known.shift();
      times.set(name, known);
    },
    counted: (name) => [...counters.values()].filter((one) => one.name === name),
    lately: (name) => times.get(name) ?? [],
    render: () => Promise.resolve({ text: "", content_type: "text/plain" }),
    [Symbol.dispose]: () => undefined,
  };
}

/** Loads the library for Prometheus, and is therefore called only where the figures are wanted. */
export async function createMetrics(): Promise<Metrics> {
  const { Counter, Gauge, Histogram, Registry } = await import("prom-client");
  const registry = new Registry();
  const registers = [registry];
  const tally = createTally();
  const all = Object.entries<Series>({ ...COUNTERS, ...HISTOGRAMS });
  const known = new Map(all.map(([name, { labels }]) => [name, labels]));
  const counters = new Map(
    Object.entries<Series>(COUNTERS).map(([name, { help, labels }]) => [
      name,
      new Counter({ name, help, labelNames: Object.keys(labels), registers }),
    ]),
  );
  const histograms = new Map<string, Histogram>(
    Object.entries<Series & { buckets: number[] }>(HISTOGRAMS).map(([name, { help, labels, buckets }]) => [
      name,
      new Histogram({ name, help, labelNames: Object.keys(labels), buckets, registers }),
    ]),
  );
  const addReading = (into: Registry, { name, help, labels, values }: Reading): void => {
    const options = { name, help, labelNames: labels, registers: [into] };
    const series = name.endsWith("_total") ? new Counter(options) : new Gauge(options);
    for (const one of values) series.inc(one.labels, one.value);
  };
  const sampler = sampleLoop((seconds) =>
    histograms.get("mailwright_event_loop_delay_seconds")?.observe(seconds),
  );
  return {
    ...tally,
    on: true,
    count(name, labels = {}, by = 1) {
      tally.count(name, labels, by);
      counters.get(name)?.inc(within(known.get(name), labels), by);
    },
    time(name, labels, seconds) {
      tally.time(name, labels, seconds);
      histograms.get(name)?.observe(within(known.get(name), labels), seconds);
    },
    async render(readings) {
      const read = new Registry();
      for (const reading of [...readings, ...processReadings()]) addReading(read, reading);
      const text = `${await registry.metrics()}\n${await read.metrics()}`;
      return { text, content_type: registry.contentType };
    },
    [Symbol.dispose]: () => clearInterval(sampler),
  };
}

function within(known: LabelValues | undefined, labels: Labels): Labels {
  for (const [name, value] of Object.entries(labels))
    if (!known?.[name]?.includes(value)) return { ...labels, [name]: "other" };
  return labels;
}

function sampleLoop(observe: (seconds: number) => void): ReturnType<typeof setInterval> {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    observe(Math.max(0, now - last - SAMPLE_MS) / 1_000);
    last = now;
  }, SAMPLE_MS);
  timer.unref();
  return timer;
}

/** Returns what the process uses: much of what the library offers by itself means nothing on this runtime. */
function processReadings(): Reading[] {
  const { user, system } = process.cpuUsage();
  return [
    reading("mailwright_info", "The version that runs.", [{ labels: { version: VERSION }, value: 1 }]),
    reading("mailwright_uptime_seconds", "Since the process began.", one(process.uptime())),
    reading("process_resident_memory_bytes", "Memory of the process.", one(process.memoryUsage.rss())),
    reading(
      "process_cpu_seconds_total",
      "Time of the processors that the process has used.",
      one((user + system) / 1e6),
    ),
  ];
}

/** A gauge, or a counter if its name ends in `_total`; its labels are those of its first value. */
export function reading(name: string, help: string, values: Reading["values"]): Reading {
  return { name, help, labels: Object.keys(values[0]?.labels ?? {}), values };
}

function one(value: number): Reading["values"] {
  return [{ labels: {}, value }];
}
