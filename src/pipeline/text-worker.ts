import { type SentWork, TEXT_WORK } from "./text-work.ts";

declare const self: Worker;

self.addEventListener("message", async ({ data }: MessageEvent<SentWork>) => {
  const work = TEXT_WORK[data.name] as (input: unknown) => unknown;
  postMessage(await work(data.input));
});
postMessage("ready");
