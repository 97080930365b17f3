import { answerEach } from "../lib/worker-says.ts";
import { type SentWork, TEXT_WORK } from "./text-work.ts";
import { writingRoom } from "./written-texts.ts";

// What the works load only when they are done must not count as the time of a text.
await TEXT_WORK.build({ text: "a" });
await TEXT_WORK.writes({ args: { a: "<p>a &amp; b</p>" }, own: "a", room: writingRoom() });
answerEach(async ({ name, input }: SentWork) => {
  const work = TEXT_WORK[name] as (input: unknown) => unknown;
  return { output: await work(input) };
});
