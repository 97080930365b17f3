import { sayReady } from "../lib/worker-says.ts";
import { type SentWork, TEXT_WORK } from "./text-work.ts";
import { writingRoom } from "./written-texts.ts";

declare const self: Worker;

self.addEventListener("message", async ({ data }: MessageEvent<SentWork>) => {
  const work = TEXT_WORK[data.name] as (input: unknown) => unknown;
  postMessage(await work(data.input));
});
// What the works load only when they are done must not count as the time of a text.
await TEXT_WORK.build({ text: "a" });
await TEXT_WORK.writes({ args: { a: "<p>a &amp; b</p>" }, own: "a", room: writingRoom() });
sayReady();
