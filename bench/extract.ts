import { randomBytes } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createFileReader } from "../src/files/reader.ts";
import { pdfOfPages, words } from "../test/support/files.ts";
import { noteFigure, printResults, printSettings, roundsOf } from "./support.ts";
import { MB } from "../src/lib/sizes.ts";

/** How long the thread that serves everybody is held up while ten large PDFs are read at once, against nothing to do. */
const ROUNDS = roundsOf(5);
const FILES = 10;
const PAGES = 200;
const FILE_BYTES = 20 * 1_048_576;
const LINES = 20;
const IDLE_MS = 2_000;
const NS_PER_MS = 1e6;

const pdf = largePdf();
printSettings({
  rounds: ROUNDS,
  files: `${FILES} PDFs of ${(pdf.byteLength / MB).toFixed(1)} MB and ${PAGES} pages, ${FILES} messages at once`,
  delay: "of a timer of 10 ms on the main thread (perf_hooks)",
});

await using reader = createFileReader();
const never = new AbortController().signal;
await readAll();
const idle: { p99: number; max: number }[] = [];
const busy: typeof idle = [];
const seconds: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  idle.push(await delaysDuring(() => Bun.sleep(IDLE_MS)));
  const started = performance.now();
  busy.push(await delaysDuring(readAll));
  seconds.push((performance.now() - started) / 1_000);
}
const figures = (rounds: typeof idle, name: keyof (typeof idle)[0]) => rounds.map((round) => round[name]);
noteFigure("ten PDFs read", seconds, "s");
noteFigure("event-loop delay, idle, p99", figures(idle, "p99"), "ms");
noteFigure("event-loop delay, reading, longest", figures(busy, "max"), "ms");
noteFigure("event-loop delay, reading, p99", figures(busy, "p99"), "ms");
printResults();

async function readAll(): Promise<void> {
  const file = { filename: "a.pdf", content_type: "application/pdf", bytes: pdf };
  const readings = await Promise.all(Array.from({ length: FILES }, () => reader.read([file], never)));
  for (const [reading] of readings) if (reading?.text === "") throw new Error(`Not read: ${reading.note}`);
}

async function delaysDuring(work: () => Promise<unknown>): Promise<{ p99: number; max: number }> {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  await work();
  delay.disable();
  return { p99: delay.percentile(99) / NS_PER_MS, max: delay.max / NS_PER_MS };
}

/** Some text on each page, and beside it what cannot be packed, as a scan or a photo would be. */
function largePdf(): Uint8Array<ArrayBuffer> {
  const filler = FILE_BYTES / PAGES;
  const pages = Array.from({ length: PAGES }, (_, page) => {
    const text = words(
      ...Array.from({ length: LINES }, (_, line) => `Page ${page}, line ${line}: some words`),
    );
    // Behind a percent sign a line is a comment (ISO 32000-2 §7.2.4).
    return `${text}\n%${randomBytes(filler / 2).toString("hex")}\n`;
  });
  return pdfOfPages(pages);
}
